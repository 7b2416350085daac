// The regions Heads and Head.
import { $, el, set, sync, link, copyButton, attempt } from "./dom.js";
import { get, post, state, choose, address, currentHead, coalesce } from "./api.js";

const list = $("#heads tbody");
const region = $("#head");
let revealed = ""; // the head whose access URL is shown whole
let shown; // the head whose fields are shown

const mode = (head) => (head.videoStreaming ? "streaming" : "legacy");
const visualMode = (head) => state.visuals.find((v) => v.id === head.headVisualId)?.mode ?? "unknown";

function badge(node, head) {
  set(node, mode(head));
  node.className = "badge " + mode(head);
}

function row(head) {
  const name = el("a", { class: "name", onclick: (e) => { e.preventDefault(); choose({ head: head.id, session: "" }); } });
  const id = el("td", {}, el("code", {}, head.id), " ", copyButton("Copy id", async () => head.id));
  return el("tr", {}, el("td", {}, name), id, el("td", {}, el("span", { class: "badge" })),
    el("td"), el("td"), el("td"), el("td"), el("td"), el("td"));
}

function fill(tr, head) {
  const name = $("a", tr);
  set(name, head.name || head.id);
  name.href = address({ head: head.id, session: "" });
  tr.setAttribute("aria-current", String(head.id === currentHead()?.id));
  badge($(".badge", tr), head);
  const cells = [...tr.children].slice(3);
  const texts = [`${head.ttsVoice} of ${head.ttsProvider}`, visualMode(head), head.enableEvents ? "on" : "off", head.operationMode,
    String(head.tools.length), String(state.registrations.filter((r) => r.headId === head.id).length)];
  cells.forEach((cell, i) => set(cell, texts[i]));
}

// renderSwitches shows the state of a switch on its two halves. Each half keeps its name,
// so either state can be set whatever the state is, and the one in force is pressed.
function renderSwitches(head) {
  const on = { "video-streaming": head.videoStreaming, splitter: head.splitter, "enable-events": head.enableEvents };
  for (const button of region.querySelectorAll("[data-change]")) {
    button.setAttribute("aria-pressed", String(on[button.dataset.change] === (button.dataset.on === "true")));
  }
}

function renderWebhooks(head) {
  sync($(".webhooks", region), state.registrations.filter((r) => r.headId === head.id), (r) => r.id,
    () => el("li", {}, el("span"), el("strong", { class: "warn" })),
    (li, r) => {
      set(li.firstChild, `Webhook ${r.id}, ${r.receiver}: ${r.events.join(", ") || "no event"}`);
      set(li.lastChild, r.note ? `; ${r.note}` : "");
    });
}

function renderEmpty() {
  const place = $("#heads .empty");
  place.hidden = state.heads.length > 0;
  $("#heads .scroll").hidden = !place.hidden;
  if (place.hidden || place.firstChild) return;
  const line = `curl -sS -H 'Content-Type: application/json' ${location.origin}/_emulator/seed -d '{"heads":[{"name":"Ada","operationMode":"oc"}]}'`;
  place.append(el("p", {}, "There is no head yet. Add one:"), el("pre", {}, line), copyButton("Copy line", async () => line));
}

function value(raw) {
  if (typeof raw === "string") return link(raw);
  return document.createTextNode(JSON.stringify(raw, null, raw && typeof raw === "object" ? 1 : 0));
}

const loadDetail = coalesce(async () => {
  const head = currentHead();
  if (!head) return;
  const detail = await get("heads/" + head.id);
  if (currentHead()?.id !== head.id) return;
  shown = detail;
  const fields = Object.entries(detail.fields);
  sync($("table tbody", region), fields, ([name]) => name,
    ([name]) => el("tr", {}, el("th", { scope: "row" }, name), el("td")),
    (tr, [, raw]) => {
      const text = JSON.stringify(raw);
      if (tr.dataset.raw === text) return;
      tr.dataset.raw = text;
      tr.lastChild.replaceChildren(value(raw));
    });
  dispatchEvent(new Event("forms"));
});

export const forms = () => (shown && shown.id === currentHead()?.id ? shown.forms : []);

export function render() {
  sync(list, state.heads, (h) => h.id, row, fill);
  renderEmpty();
  const head = currentHead();
  $(".content", region).hidden = !head;
  if (!head) return;
  set($(".name", region), head.name || head.id);
  set($(".id", region), head.id);
  badge($(".line .badge", region), head);
  renderSwitches(head);
  renderWebhooks(head);
  if (revealed !== head.id + head.address) {
    revealed = "";
    if ($(".address", region).dataset.url !== head.address) {
      $(".address", region).dataset.url = head.address;
      $(".address", region).replaceChildren(link(head.address), " (key hidden)");
    }
  }
  loadDetail();
}

$(".reveal", region).addEventListener("click", (e) => attempt(e.target, async () => {
  const head = currentHead();
  const { address: whole } = await get(`heads/${head.id}/address`);
  revealed = head.id + head.address;
  delete $(".address", region).dataset.url;
  $(".address", region).replaceChildren(link(whole));
}));

for (const button of region.querySelectorAll("[data-change]")) {
  button.addEventListener("click", () => attempt(button, () => {
    const { change, on } = button.dataset;
    const body = { "video-streaming": { videoStreaming: on === "true" }, "enable-events": { enableEvents: on === "true" } }[change];
    return post(`heads/${currentHead().id}/${change}`, body);
  }));
}

$("form.edit", region).addEventListener("submit", (e) => {
  e.preventDefault();
  const note = $(".note", region);
  note.textContent = "";
  attempt(e.target, async () => {
    await post(`heads/${currentHead().id}/update`, $("#fields").value);
    note.textContent = "Sent. Its row in Requests shows what changed and what was ignored.";
  });
});

addEventListener("chosen", () => {
  for (const alert of region.querySelectorAll("[role=alert]")) alert.remove();
  $(".note", region).textContent = "";
});
