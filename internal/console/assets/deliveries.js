// The region Deliveries.
import { $, el, set, sync, terms, pretty, time, span, millis, copyButton, attempt } from "./dom.js";
import { get, post, state, chosen, choose, currentHead } from "./api.js";
import { journal } from "./journal.js";

const region = $("#deliveries");
const events = ["start_conversation", "end_conversation", "inactivity_warning", "timeout_conversation"];
const answered = (d) => !d.error && d.status >= 200 && d.status < 300;

// filters returns the query of the list. Unless another choice is made, it follows the
// chosen head.
function filters() {
  const headId = chosen.headId === "any" ? "" : chosen.headId || currentHead()?.id;
  const all = { headId, event: chosen.event, outcome: chosen.outcome };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value));
}

function matches(d) {
  const { headId, event, outcome } = filters();
  return (!headId || d.headId === headId) && (!event || d.event === event) && (!outcome || (outcome === "delivered") === answered(d));
}

function outcome(d) {
  if (answered(d)) return "✓ " + d.status;
  return "✕ " + (d.status ? `${d.status} ` : "") + (d.error || "");
}

function row(d) {
  const open = el("button", { type: "button", class: "link", onclick: () => show(d.id) }, d.event);
  const duration = d.attempt === 0 ? "none made" : span(d.took);
  return el("tr", {}, el("td", {}, time(d.at)), el("td", {}, open), el("td", {}, `${d.webhookId}, ${d.receiver}`), el("td", {}, String(d.attempt)),
    el("td", { class: answered(d) ? "good" : "bad" }, outcome(d).slice(0, 60)), el("td", {}, duration), el("td"));
}

const due = (d) => new Date(d.at).getTime() + millis(d.took) + millis(d.retryIn) - Date.now();

function fill(tr, d) {
  const left = d.final ? 0 : due(d);
  set(tr.lastChild, d.final ? "none follows" : left > 0 ? `${(left / 1000).toFixed(1)} s` : "made");
}

function empty() {
  if (chosen.headId || chosen.event || chosen.outcome) return ["filtered", el("p", {}, "No delivery matches the filters.")];
  const line = `curl -sS -H "Authorization: Bearer $HEADS_TOKEN" -H 'Content-Type: application/json' ${location.origin}/head-events ` +
    `-d '{"headId":"'"$HEADS_HEAD_ID"'","webhookUrl":"'"$RECEIVER_URL"'","startConversation":true,"endConversation":true}'`;
  return ["none", el("p", {}, "No event has been delivered yet. Register a receiver, turn delivery on, start a session and send a message:"),
    el("pre", {}, line), copyButton("Copy line", async () => line)];
}

const list = journal(region, { path: "deliveries", query: filters, matches, row, fill, empty });

setInterval(() => {
  const waiting = list.rows().filter((d) => !d.final);
  if (waiting.some((d) => due(d) > -1000)) list.render();
}, 200);

export const add = list.add;
export const restart = list.restart;

export function render() {
  const heads = $("[data-filter=headId]", region);
  sync(heads, [{ id: "", name: "this head" }, { id: "any", name: "any" }, ...state.heads], (h) => h.id, (h) => el("option", { value: h.id }), (o, h) => set(o, h.name || h.id));
  const names = $("[data-filter=event]", region);
  sync(names, ["", ...events], (e) => e, (e) => el("option", { value: e }, e || "any"));
  for (const select of region.querySelectorAll("[data-filter]")) {
    if (select.value !== chosen[select.dataset.filter]) select.value = chosen[select.dataset.filter];
  }
  if (!follow()) list.render();
}

for (const select of region.querySelectorAll("[data-filter]")) {
  select.addEventListener("change", () => choose({ [select.dataset.filter]: select.value }));
}

let filtered = "";

// follow reads the list again if the filters, or the head that they follow, have changed.
function follow() {
  const now = JSON.stringify(filters());
  if (now === filtered) return false;
  filtered = now;
  restart();
  return true;
}

async function show(id) {
  const d = await get("deliveries/" + id);
  const close = el("button", { type: "button", onclick: () => $(".opened", region).replaceChildren() }, "Hide delivery");
  const resend = el("button", { type: "button" }, "Resend");
  const box = el("section", { class: "box", "aria-label": "Delivery", tabindex: "-1" },
    el("h3", {}, `${d.event}, attempt ${d.attempt}`),
    terms([["Time", time(d.at)], ["Registration", `${d.webhookId}, ${d.receiver}`], ["Outcome", outcome(d)], ["Duration", span(d.took)],
      ["Signature", el("strong", { class: d.signature === "right" ? "good" : "bad" }, "signature " + d.signature)]]),
    el("div", { class: "buttons" }, resend, copyButton("Copy as curl", async () => (await get(`deliveries/${id}/curl`)).text),
      copyButton("Copy as Go test", async () => (await get(`deliveries/${id}/go-test`)).text), close),
    el("h3", {}, "Headers"), terms(Object.entries(d.headers)),
    el("h3", {}, "Body, pretty"), el("pre", {}, pretty(d.body)), el("h3", {}, "Body, raw"), el("pre", {}, d.body),
    el("h3", {}, `Answer, status ${d.status}`), el("pre", {}, d.reply || "none"));
  resend.addEventListener("click", () => attempt(resend, () => post(`deliveries/${id}/resend`)));
  $(".opened", region).replaceChildren(box);
  box.focus();
}
