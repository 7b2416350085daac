// The region Requests.
import { $, el, terms, pretty, time, span } from "./dom.js";
import { get } from "./api.js";
import { journal } from "./journal.js";

const region = $("#requests");
const failed = (r) => r.status === 0 || r.status >= 400;
const outcome = (r) => (failed(r) ? "✕ " : "✓ ") + (r.status || "cut");

function row(r) {
  const open = el("button", { type: "button", class: "link", onclick: () => show(r.id) }, `${r.method} ${r.path}`);
  return el("tr", {}, el("td", {}, time(r.at)), el("td", {}, open), el("td", { class: failed(r) ? "bad" : "good" }, outcome(r)), el("td", {}, span(r.took)));
}

function empty() {
  return ["none", el("p", {}, "No operation has been called yet. Point your program at this emulator, with the variables that it has printed:"),
    el("pre", {}, "client, err := heads.NewFromEnv()")];
}

const list = journal(region, { path: "requests", query: () => ({}), matches: () => true, row, empty });

export const add = list.add;
export const restart = list.restart;

const text = (value) => (value === null ? "null" : JSON.stringify(value, null, 1));

function difference(changes) {
  return el("table", {}, el("thead", {}, el("tr", {}, ...["Field", "Before", "After"].map((t) => el("th", { scope: "col" }, t)))),
    el("tbody", {}, ...changes.map((c) => el("tr", {}, el("th", { scope: "row" }, c.field),
      el("td", {}, el("del", {}, text(c.before))), el("td", {}, el("ins", {}, text(c.after)))))));
}

async function show(id) {
  const r = await get("requests/" + id);
  const close = el("button", { type: "button", onclick: () => $(".opened", region).replaceChildren() }, "Hide request");
  const box = el("section", { class: "box", "aria-label": "Request", tabindex: "-1" },
    el("h3", {}, `${r.method} ${r.path}`),
    terms([["Time", time(r.at)], ["Status", outcome(r)], ["Duration", span(r.took)], ["Query", r.query || "none"]]), close,
    el("h3", {}, "Body"), el("pre", {}, pretty(r.body) || "none"));
  if (r.method !== "GET" && r.headId) {
    box.append(el("h3", {}, "Changes of the head"), r.changes.length ? difference(r.changes) : el("p", {}, "Nothing changed."));
  }
  if (r.ignored.length) {
    box.append(el("h3", {}, "ignored"), terms(r.ignored.map((f) => [f.field, `ignored: ${text(f.value)}`])));
  }
  $(".opened", region).replaceChildren(box);
  box.focus();
}
