// The region Timeline: what happened in the session, on one time axis.
import { $, el, svg, set, terms, time, instant, millis, span, count } from "./dom.js";
import { get, coalesce } from "./api.js";
import { story, detailOf } from "./session.js";

const region = $("#timeline");
const lanes = ["message", "event", "attempt", "tool call"];
const titles = { message: "Messages", event: "Events", attempt: "Attempts", "tool call": "Tool calls" };
const maxMarks = 150;
const left = 92, size = 22, step = 28;
let deliveries = []; // of the session
let loaded = ""; // the session that they are of
let pressed = ""; // the key of the mark whose detail is shown

export const load = coalesce(async () => {
  const id = story.id;
  if (id !== loaded) deliveries = [];
  loaded = id; // set first, so rows from the stream are not lost in the meantime
  const list = id ? await get(`deliveries?limit=${maxMarks}&sessionId=${encodeURIComponent(id)}`) : [];
  if (id !== loaded) return;
  const newest = list.at(-1)?.id ?? 0;
  deliveries = [...list, ...deliveries.filter((d) => d.id > newest)];
  render();
});

export function add(rows) {
  const seen = new Set(deliveries.map((d) => d.id));
  const fresh = rows.filter((d) => d.sessionId === loaded && !seen.has(d.id));
  if (fresh.length === 0) return;
  deliveries = [...deliveries, ...fresh].slice(-maxMarks);
  render();
}

addEventListener("story", () => (story.id === loaded ? render() : load()));

const answered = (d) => !d.error && d.status >= 200 && d.status < 300;

function marks() {
  const list = [];
  for (const h of story.log) {
    const at = instant(h.at);
    if (h.kind === "message") list.push({ key: "h" + h.id, lane: 0, at, name: `message ${h.text}`, sign: "…", of: h });
    if (h.kind === "event") list.push({ key: "h" + h.id, lane: 1, at, name: `event ${h.event}`, sign: "!", of: h });
    if (h.kind === "tool call") {
      const bad = Boolean(h.problem);
      list.push({ key: "h" + h.id, lane: 3, at, name: `tool call ${h.tool}: ${bad ? "failed" : "answered"}`, sign: bad ? "✕" : "✓", bad, good: !bad, of: h });
    }
  }
  for (const d of deliveries) {
    const good = answered(d);
    const outcome = good ? "delivered" : "failed";
    list.push({ key: "d" + d.id, lane: 2, at: instant(d.at), name: `attempt ${d.attempt} of ${d.event}, webhook ${d.webhookId}: ${outcome}`,
      sign: good ? "✓" : "✕", bad: !good, good, delivery: d });
  }
  return list.sort((a, b) => a.at - b.at).slice(-maxMarks);
}

// place sets the x of every mark by its time, so that the marks fill the width however
// short the session is, and a row of its lane in which it hides no other mark.
function place(list, width) {
  const from = list[0].at;
  const length = Math.max(list.at(-1).at - from, 0.1);
  const scale = (width - left - size * 2) / length;
  const rows = lanes.map(() => []);
  for (const m of list) {
    m.x = left + size + (m.at - from) * scale;
    const ends = rows[m.lane];
    m.row = ends.findIndex((end) => end + step <= m.x);
    if (m.row < 0) m.row = ends.length;
    ends[m.row] = m.x;
  }
  let top = 8;
  const tops = rows.map((ends) => {
    const y = top;
    top += Math.max(ends.length, 1) * step + 8;
    return y;
  });
  for (const m of list) m.y = tops[m.lane] + m.row * step + step / 2;
  return { tops, height: top, from, length, scale };
}

const shapes = [
  () => svg("circle", { class: "shape", r: size / 2 }),
  () => svg("path", { class: "shape", d: `M0 ${-size / 2 - 1}L${size / 2 + 1} 0L0 ${size / 2 + 1}L${-size / 2 - 1} 0z` }),
  () => svg("rect", { class: "shape", x: -size / 2, y: -size / 2, width: size, height: size, rx: 3 }),
  () => svg("path", { class: "shape", d: `M${-size / 2} ${size / 2}L0 ${-size / 2}L${size / 2} ${size / 2}z` }),
];

function newMark(m) {
  const node = svg("g", { role: "button", tabindex: "0" }, shapes[m.lane](), svg("text", { y: m.lane === 3 ? 9 : 4 }));
  node.addEventListener("click", () => press(m.key));
  node.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    press(m.key);
  });
  return node;
}

function press(key) {
  pressed = key;
  render();
}

// links are the lines from an event to its attempts; those to retries are dashed.
function links(list) {
  const events = new Map(list.filter((m) => m.of?.kind === "event").map((m) => [m.of.id, m]));
  return list.filter((m) => m.delivery && events.has(m.delivery.eventId)).map((m) => {
    const event = events.get(m.delivery.eventId);
    return svg("path", { class: m.delivery.attempt > 1 ? "retry" : "first", d: `M${event.x} ${event.y}L${m.x} ${m.y}` });
  });
}

function axis(p, width) {
  const nodes = [];
  lanes.forEach((lane, i) => nodes.push(svg("text", { x: 0, y: p.tops[i] + step / 2 + 4 }, titles[lane]),
    svg("path", { class: "axis", d: `M0 ${p.tops[i] - 4}H${width}` })));
  const wanted = p.length / 6;
  const unit = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000, 1800000].find((u) => u >= wanted) ?? wanted;
  for (let t = 0; t <= p.length; t += unit) {
    const x = left + size + t * p.scale;
    nodes.push(svg("text", { x, y: p.height + 10, "text-anchor": "middle" }, t < 1000 ? `${+t.toFixed(2)} ms` : `${+(t / 1000).toFixed(1)} s`),
      svg("path", { class: "axis", d: `M${x} 4V${p.height - 4}` }));
  }
  return nodes;
}

// picture holds the permanent parts of the SVG, so a mark keeps its focus.
const picture = (() => {
  const title = svg("title", {}, "Timeline of the session");
  const desc = svg("desc");
  const lines = svg("g", { "aria-hidden": "true" });
  const points = svg("g");
  const root = svg("svg", { role: "group", "aria-label": "Timeline of the session", "aria-describedby": "timeline-text" }, title, desc, lines, points);
  $(".scroll", region).append(root);
  return { root, desc, lines, points };
})();

export function render() {
  const list = story.id ? marks() : [];
  const failed = deliveries.filter((d) => !answered(d)).length;
  const marked = (lane, noun) => count(list.filter((m) => m.lane === lane).length, noun);
  const text = list.length === 0
    ? "Nothing has happened yet. Start a session and send a message."
    : `${marked(0, "message")}, ${marked(1, "event")}, ${marked(2, "delivery attempt")} (${failed} failed), ${marked(3, "tool call")}.`;
  set($("#timeline-text"), text);
  set(picture.desc, text);
  picture.root.setAttribute("visibility", list.length ? "visible" : "hidden");
  if (list.length === 0) picture.root.setAttribute("height", 0);
  const width = Math.max($(".scroll", region).clientWidth - 4, 480);
  const p = list.length ? place(list, width) : { height: 0 };
  if (list.length) {
    picture.root.setAttribute("width", width);
    picture.root.setAttribute("height", p.height + 18);
    picture.lines.replaceChildren(...axis(p, width), ...links(list));
  }
  draw(list);
  detail(list.find((m) => m.key === pressed));
}

function draw(list) {
  const old = new Map([...picture.points.children].map((node) => [node.dataset.key, node]));
  for (const m of list) {
    let node = old.get(m.key);
    if (!node) {
      node = newMark(m);
      node.dataset.key = m.key;
      picture.points.append(node);
    }
    old.delete(m.key);
    node.setAttribute("transform", `translate(${m.x} ${m.y})`);
    node.setAttribute("class", "mark" + (m.bad ? " failed" : "") + (m.good ? " done" : ""));
    node.setAttribute("aria-label", m.name);
    node.setAttribute("aria-pressed", String(m.key === pressed));
    set(node.lastChild, m.sign);
  }
  for (const node of old.values()) node.remove();
}

function detail(m) {
  const place = $(".detail", region);
  if (!m) return place.replaceChildren();
  if (place.dataset.key === m.key && place.firstChild) return;
  place.dataset.key = m.key;
  place.replaceChildren(el("h3", {}, m.name), terms(m.of ? detailOf(m.of) : attemptDetail(m.delivery)));
}

function attemptDetail(d) {
  return [["Time", time(d.at)], ["Event", d.event], ["Registration", `${d.webhookId}, ${d.receiver}`], ["Attempt", String(d.attempt)],
    ["Status", String(d.status)], ["Error", d.error || "none"], ["Duration", span(d.took)],
    ["Next attempt in", d.final || millis(d.retryIn) === 0 ? "none follows" : span(d.retryIn)]];
}

// The heading is as wide as the picture, and rendering does not change it.
new ResizeObserver(() => render()).observe($("h2", region));
