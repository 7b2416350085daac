// The control API, the stream of what happens, and hooks that read them.
import { useEffect, useReducer, useState } from "./standalone.module.js";

async function call(method, path, body) {
  const response = await fetch("/_emulator/" + path, {
    method,
    headers: { "Content-Type": "application/json", "Emulator-Console": "1" },
    body: method === "GET" ? undefined : typeof body === "string" ? body : JSON.stringify(body ?? {}),
  });
  const text = await response.text();
  const value = parse(text);
  if (!response.ok || response.headers.has("Emulator-Status")) throw new Error(value.message ?? text);
  return value;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const remove = (path) => call("DELETE", path);

// parse returns the value of a JSON text, and any other text as it is.
export function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

// The version counts the changes of the state. The epoch counts the times that everything must be
// read again: after a reset, and after a lost connection.
export const store = { state: undefined, connection: "reconnecting", version: 0, epoch: 0 };

export const webhooksOf = (head) => store.state.registrations.filter((r) => r.headId === head.id);
export const sessionsOf = (head) => store.state.sessions.filter((s) => s.headId === head.id);

const watchers = new Set();
const followers = new Set();

export function changed() {
  for (const watch of watchers) watch();
}

// useChanges draws a component again after each change of the store or the address.
export function useChanges() {
  const [, again] = useReducer((n) => n + 1, 0);
  useEffect(() => {
    watchers.add(again);
    again(); // what has changed since the first drawing
  }, []);
}

// coalesce returns a function that calls f, but not while f runs or for some time after, which
// is longer if f takes long.
function coalesce(f) {
  let wanted = false;
  let running = false;
  return async () => {
    wanted = true;
    if (running) return;
    running = true;
    while (wanted) {
      wanted = false;
      const began = performance.now();
      await f();
      await new Promise((resolve) => setTimeout(resolve, 30 + Math.min(performance.now() - began, 500)));
    }
    running = false;
  };
}

const readState = coalesce(() => get("state").then((state) => {
  store.state = state;
  store.version++;
  changed();
}, () => {})); // the stream shows the lost connection, and then everything is read again

function readAll() {
  store.epoch++;
  readState();
  changed();
}

export function follow() {
  const source = new EventSource("/_emulator/stream");
  const connection = (text) => {
    store.connection = text;
    changed();
  };
  source.onopen = () => {
    if (store.epoch > 0) readAll(); // what could not be read while the connection was lost
    connection("live");
  };
  source.onerror = () => {
    connection("reconnecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 500);
  };
  source.onmessage = (e) => {
    const batch = JSON.parse(e.data);
    if (batch.fresh) return readAll();
    if (batch.state) readState();
    for (const tell of followers) tell(batch);
  };
}

const flood = 100; // a batch with so many rows of a kind may lack others

// useFollowed returns what read resolves to, with {ready} or {error}. It reads again when the
// mark changes, and when the stream has a row that concerns it.
function useFollowed(key, kinds, concerns, read, mark) {
  const [kept, keep] = useState({});
  useEffect(() => {
    if (!key) return undefined;
    let wanted = true;
    const show = (has) => wanted && keep((was) => ({ ...(was.key === key && was), key, ready: true, error: "",
      ...has }));
    const load = coalesce(() => read().then(show, (error) => show({ error: error.message })));
    const tell = (batch) => {
      const rows = kinds.map((kind) => batch[kind] ?? []);
      if (rows.some((list) => list.length >= flood || list.some(concerns))) load();
    };
    followers.add(tell);
    load();
    return () => {
      wanted = false;
      followers.delete(tell);
    };
  }, [key, store.epoch, mark]);
  return key && kept.key === key ? kept : {};
}

// useRead returns {value} or {error} of a path, read again when the mark changes.
export const useRead = (path, mark) => useFollowed(path, [], null, async () => ({ value: await get(path) }), mark);

const size = 50; // the rows of a page of a journal

// useJournal returns {rows, more, error, ready}: a page of a journal, newest first.
export function useJournal(path, filter) {
  const query = new URLSearchParams(Object.entries({ ...filter, limit: size + 1 }).filter(([, value]) => value));
  const read = async () => {
    const rows = (await get(`${path}?${query}`)).reverse();
    return { rows: rows.slice(0, size), more: rows.length > size };
  };
  const concerns = (row) => !filter.before && (!filter.headId || row.headId === filter.headId);
  return { rows: [], ...useFollowed(`${path}?${query}`, [path], concerns, read) };
}

const longest = 400; // the most steps and attempts of a session that are shown

// useSession returns {log, deliveries, error, ready}: the steps of a session, and the attempts to
// deliver their events, oldest first.
export function useSession(id) {
  const read = async () => {
    const session = encodeURIComponent(id);
    const paths = [`sessions/${session}`, `deliveries?limit=${longest}&sessionId=${session}`];
    const [{ log }, deliveries] = await Promise.all(paths.map(get));
    return { log: log.slice(-longest), deliveries };
  };
  return { log: [], deliveries: [], ...useFollowed(id, ["log", "deliveries"], (row) => row.sessionId === id, read) };
}
