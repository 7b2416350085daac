// The region Session: what the user does, what was said, and the tools.
import { $, el, set, sync, pretty, time, span, attempt, count } from "./dom.js";
import { get, post, chosen, choose, currentHead, currentSession, sessionsOf, coalesce } from "./api.js";
import { forms } from "./heads.js";

const region = $("#session");
const maxShown = 200; // the most happenings that are shown

// story is the shown session and its happenings.
export const story = { id: "", log: [] };

export const load = coalesce(async () => {
  const session = currentSession();
  if (!session) {
    story.id = "";
    story.log = [];
  } else {
    if (story.id !== session.id) story.log = [];
    story.id = session.id; // set first, so rows from the stream are not lost in the meantime
    const { log } = await get("sessions/" + session.id);
    if (story.id !== session.id) return;
    const newest = log.at(-1)?.id ?? 0;
    story.log = [...log, ...story.log.filter((h) => h.id > newest)].slice(-maxShown);
  }
  renderLog();
  dispatchEvent(new Event("story"));
});

let last = 0; // the newest id from the stream

// add inserts rows from the stream. In a flood, the stream skips some.
export function add(log) {
  if (log.length === 0) return;
  if (last && log[0].id > last + 1) load();
  last = log.at(-1).id;
  const seen = story.log.at(-1)?.id ?? 0;
  const fresh = log.filter((h) => h.sessionId === story.id && h.id > seen);
  if (fresh.length === 0) return;
  story.log = [...story.log, ...fresh].slice(-maxShown);
  renderLog();
  dispatchEvent(new Event("story"));
}

const receivers = (h) => (h.receivers ? count(h.receivers, "registration") : `no registration: ${h.why}`);

const said = {
  start: () => "The user opened the session.",
  message: (h) => `User: ${h.text}`,
  inactive: () => "The user was inactive until the warning was shown.",
  timeout: () => "The session timed out.",
  close: () => "The user closed the session.",
  event: (h) => `Event ${h.event}, for ${receivers(h)}.`,
  "tool call": (h) => `Tool ${h.tool}: ${h.problem || h.message}`,
};

function renderLog() {
  sync($(".transcript", region), story.log, (h) => h.id,
    (h) => el("li", {}, el("span", { class: "soft" }, time(h.at) + " "), el("span", { class: h.problem ? "bad" : "" }, said[h.kind](h))));
}

export function render() {
  const sessions = sessionsOf(currentHead()).slice(-100).reverse();
  const current = currentSession();
  const select = $(".choose", region);
  sync(select, sessions, (s) => s.id, (s) => el("option", { value: s.id }),
    (option, s) => set(option, s.id.slice(0, 8) + (s.closed ? ", closed" : "")));
  if (select.value !== current?.id) select.value = current?.id ?? "";
  if (story.id !== (current?.id ?? "")) load();
  renderForms();
}

$(".choose", region).addEventListener("change", (e) => choose({ session: e.target.value }));

$(".start", region).addEventListener("click", (e) => attempt(e.target, async () => {
  const head = currentHead();
  const session = await post("sessions", { headId: head?.id ?? chosen.head });
  choose({ head: head.id, session: session.id });
}));

async function act(action, body) {
  const session = currentSession();
  if (!session) throw new Error('there is no session yet; press "Start session" first');
  await post(`sessions/${session.id}/${action}`, body);
}

const talk = $("form.talk", region);
talk.addEventListener("submit", (e) => {
  e.preventDefault();
  attempt(talk, async () => {
    await act("message", { text: $("#message").value });
    $("#message").value = "";
  });
});
for (const button of talk.querySelectorAll("[data-act]")) {
  button.addEventListener("click", () => attempt(button, () => act(button.dataset.act)));
}

// argument reads a field as the type that the parameter has.
function argument(type, text) {
  if (!type || type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text; // the tool reports what is wrong
  }
}

function form(tool) {
  const fields = tool.parameters.map((p) => el("label", { title: p.description }, p.name + " ",
    el("input", { name: p.name, "data-type": p.type, autocomplete: "off" })));
  const outcome = el("div", { class: "outcome", "aria-live": "polite" });
  const node = el("form", { class: "tool", "aria-label": tool.name, novalidate: true },
    el("p", {}, el("strong", {}, tool.name), " ", tool.description), ...fields, el("button", {}, "Call tool"), outcome);
  node.addEventListener("submit", (e) => {
    e.preventDefault();
    attempt(node, async () => {
      const args = {};
      for (const input of node.querySelectorAll("input")) if (input.value !== "") args[input.name] = argument(input.dataset.type, input.value);
      const session = currentSession();
      if (!session) throw new Error('there is no session yet; press "Start session" first');
      show(outcome, await post(`sessions/${session.id}/tool-calls`, { tool: tool.name, arguments: args }));
    });
  });
  return node;
}

function show(outcome, call) {
  outcome.replaceChildren(
    call.problem ? el("p", { class: "bad" }, "✕ " + call.problem) : el("p", { class: "good" }, "✓ " + call.message),
    el("h3", {}, "Request"), el("pre", {}, pretty(JSON.stringify(call.sent))),
    el("h3", {}, `Reply, status ${call.status}`), el("pre", {}, pretty(call.reply) || "none"));
}

export function renderForms() {
  sync($(".tools", region), forms(), (t) => JSON.stringify([currentHead()?.id, t]), form);
}
addEventListener("forms", renderForms);

// detailOf describes one thing that happened, for the timeline.
export function detailOf(h) {
  const pairs = [["Time", time(h.at)]];
  if (h.text) pairs.push(["Text", h.text]);
  if (h.kind === "event") pairs.push(["Event", h.event], ["Registrations", receivers(h)]);
  if (h.kind === "tool call") {
    pairs.push(["Tool", h.tool], ["Status", String(h.status ?? 0)], ["Duration", span(h.took ?? "0s")], ["Problem", h.problem || "none"],
      ["Request", el("pre", {}, pretty(h.sent))], ["Reply", el("pre", {}, pretty(h.reply ?? "") || "none")]);
  }
  return pairs;
}
