// The control API, and the state that the page shows.

const base = "/_emulator/";

async function call(method, path, body) {
  const response = await fetch(base + path, {
    method,
    headers: { "Content-Type": "application/json", "Emulator-Console": "1" },
    body: method === "GET" ? undefined : typeof body === "string" ? body : JSON.stringify(body ?? {}),
  });
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    value = { message: text };
  }
  if (!response.ok || response.headers.has("Emulator-Status")) throw new Error(value.message || response.statusText);
  return value;
}

export const get = (path) => call("GET", path);
export const post = (path, body) => call("POST", path, body);
export const remove = (path) => call("DELETE", path);

// state is the emulator's state.
export const state = JSON.parse(document.body.dataset.state);

// chosen holds what the URL selects: the head, the session and the filters.
export const chosen = {};
const keys = ["head", "session", "headId", "event", "outcome"];

export function readURL() {
  const query = new URLSearchParams(location.search);
  for (const key of keys) chosen[key] = query.get(key) ?? "";
}

// address returns the URL of this page with other choices.
export function address(changes = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries({ ...chosen, ...changes })) if (value) query.set(key, value);
  const text = query.toString();
  return base + (text && "?" + text);
}

// choose changes the choices and sends the page's event "chosen".
export function choose(changes) {
  history.pushState(null, "", address(changes));
  readURL();
  dispatchEvent(new Event("chosen"));
}

export function currentHead() {
  return state.heads.find((h) => h.id === chosen.head) ?? (chosen.head ? undefined : state.heads[0]);
}

export function sessionsOf(head) {
  return state.sessions.filter((s) => s.headId === head?.id);
}

export function currentSession() {
  const list = sessionsOf(currentHead());
  return list.find((s) => s.id === chosen.session) ?? list.at(-1);
}

// coalesce returns a function that calls f soon, and not again while f runs.
export function coalesce(f, pause = 30) {
  let wanted = false;
  let running = false;
  async function run() {
    if (running) return;
    running = true;
    while (wanted) {
      wanted = false;
      try {
        await f();
      } catch {
        // the stream reports the lost connection, and then everything is read again
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    running = false;
  }
  return () => {
    wanted = true;
    run();
  };
}
