// A window on a journal: the newest rows, or an older page of them.
import { $, el, sync } from "./dom.js";
import { get, coalesce } from "./api.js";

const size = 50;

// journal shows the entries of a path as rows, newest first. It keeps one page of
// them, however long the journal is. The query filters them; matches applies the same
// filter to a row from the stream. empty returns a key and what is shown without rows; it
// is shown anew if the key differs.
export function journal(region, { path, query, matches, row, fill, empty }) {
  let rows = []; // newest first
  let before = []; // the ids at which older pages end; none on the newest page
  let more = false;
  let full = false; // the journal has entries
  let loading = 0;
  let last = 0; // the newest id that this page has seen

  const load = coalesce(async () => {
    const mine = ++loading;
    const filter = new URLSearchParams({ ...query(), limit: size + 1 });
    if (before.length) filter.set("before", before.at(-1));
    const list = (await get(`${path}?${filter}`)).reverse();
    if (mine !== loading) return;
    more = list.length > size;
    rows = merge(list);
    full ||= rows.length > 0;
    last = Math.max(last, rows[0]?.id ?? 0);
    render();
  });

  function merge(list) {
    const newest = list[0]?.id ?? 0;
    const ahead = before.length === 0 ? rows.filter((r) => r.id > newest && matches(r)) : [];
    return [...ahead, ...list].slice(0, size);
  }

  function add(fresh) {
    if (fresh.length === 0) return;
    full = true;
    const missed = fresh[0].id > last + 1; // the stream skips rows in a flood
    last = fresh.at(-1).id;
    if (before.length) return;
    if (missed) load();
    const newest = rows[0]?.id ?? 0;
    const next = fresh.filter((r) => r.id > newest && matches(r)).reverse();
    if (next.length === 0) return;
    more ||= rows.length + next.length > size;
    rows = [...next, ...rows].slice(0, size);
    render();
  }

  // restart reads everything again, since open rows may be of another state.
  function restart(fresh = false) {
    if (fresh) $(".opened", region).replaceChildren();
    rows = [];
    before = [];
    full = false;
    last = 0;
    load();
  }

  const newer = el("button", { type: "button", onclick: () => { before.pop(); rows = []; load(); } }, `Newer ${path}`);
  const older = el("button", { type: "button", onclick: () => { before.push(rows.at(-1).id); rows = []; load(); } }, `Older ${path}`);
  $(".pager", region).append(newer, " ", older);

  function render() {
    sync($("tbody", region), rows, (r) => r.id, row, fill);
    const none = rows.length === 0 && !full && before.length === 0;
    $(".empty", region).hidden = !none;
    $(".scroll", region).hidden = none;
    const [key, ...nodes] = none ? empty() : [""];
    if (none && $(".empty", region).dataset.key !== key) $(".empty", region).replaceChildren(...nodes);
    $(".empty", region).dataset.key = key;
    newer.hidden = before.length === 0;
    older.hidden = !more;
  }

  return { add, restart, render, rows: () => rows };
}
