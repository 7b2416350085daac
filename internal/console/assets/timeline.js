// A session on one time axis.
import { html, useLayoutEffect, useMemo, useRef, useState } from "./standalone.module.js";
import { beside, go } from "./route.js";
import { answered, count, instant } from "./words.js";

const lanes = ["Messages", "Events", "Attempts", "Tool calls"];
const nouns = ["message", "event", "attempt", "tool call"];
const left = 88, size = 20, half = size / 2, step = 24, high = 32, top = 6, bottom = top + lanes.length * high;
const abreast = 5; // marks of one instant, at most

function marksOf({ log, deliveries }) {
  const steps = log.filter((h) => nouns.includes(h.kind)).map((h) => {
    const good = h.tool && !h.problem;
    const what = h.tool ? `${h.tool}: ${good ? "answered" : "failed"}` : h.event ?? h.text;
    return { open: "h" + h.id, lane: nouns.indexOf(h.kind), at: instant(h.at), name: `${h.kind} ${what}`, good };
  });
  const attempts = deliveries.map((d) => {
    const good = answered(d);
    const name = `attempt ${d.attempt} of ${d.event}, webhook ${d.webhookId}: ${good ? "delivered" : "failed"}`;
    return { open: "d" + d.id, lane: 2, at: instant(d.at), name, good, event: "h" + d.eventId, retry: d.attempt > 1 };
  });
  return [...steps, ...attempts].sort((a, b) => a.at - b.at);
}

// spread places the marks of one lane. Marks of one instant stand side by side where there is
// room for them, and otherwise are one mark with their number.
function spread(marks, edge) {
  const groups = [];
  for (const m of marks) {
    const last = groups.at(-1);
    if (last && m.x - last[0].x < step) last.push(m);
    else groups.push([m]);
  }
  let end = left - step; // of the marks placed so far
  return groups.flatMap((group, i) => {
    const [first] = group;
    const limit = groups[i + 1] ? groups[i + 1][0].x - step : edge;
    const from = Math.min(first.x, limit - (group.length - 1) * step);
    if (group.length <= abreast && from >= end + step) {
      end = from + (group.length - 1) * step;
      return group.map((m, n) => ({ ...m, x: from + n * step, of: [m] }));
    }
    end = first.x;
    const good = group.some((m) => m.good === false) ? false : first.good;
    const open = group.map((m) => m.open).join(",");
    return [{ ...first, open, of: group, good, name: count(group.length, nouns[first.lane]) }];
  });
}

function layout(story, width) {
  const marks = marksOf(story);
  if (!width || marks.length === 0) return undefined;
  const from = marks[0].at;
  const length = Math.max(marks.at(-1).at - from, 0.1);
  const x = (t) => left + size + t * (width - left - 2 * size) / length;
  for (const m of marks) m.x = x(m.at - from);
  const placed = lanes.flatMap((_, n) => spread(marks.filter((m) => m.lane === n), width - size));
  const ticks = [];
  const ten = 10 ** Math.floor(Math.log10(length / 6));
  const unit = ten * [2, 5, 10].find((n) => n * ten >= length / 6);
  for (let t = 0; t <= length; t += unit) {
    ticks.push({ x: x(t), text: t < 1000 ? `${+t.toFixed(2)} ms` : `${+(t / 1000).toFixed(1)} s` });
  }
  const at = new Map(placed.flatMap((m) => m.of.map((part) => [part.open, m])));
  const links = placed.flatMap((to) => to.of.filter((m) => at.has(m.event)).map((m) => (
    { kind: m.retry ? "retry" : "first", to, from: at.get(m.event) })));
  return { placed, ticks, links };
}

const y = (m) => top + m.lane * high + high / 2;

const shapes = [html`<circle r=${half} />`, html`<path d="M0 ${-half}L${half} 0L0 ${half}L${-half} 0z" />`,
  html`<rect x=${-half} y=${-half} width=${size} height=${size} rx="3" />`,
  html`<path d="M${-half} ${half}L0 ${-half}L${half} ${half}z" />`];

function Mark({ m, at }) {
  const press = () => go(beside(at, { open: m.open }));
  const key = (e) => {
    if (e.key === "Enter" || e.key === " ") press(e.preventDefault());
  };
  const kind = { true: "done", false: "failed" }[m.good] ?? "";
  const sign = m.of.length > 1 ? m.of.length : ["…", "!"][m.lane] ?? (m.good ? "✓" : "✕");
  return html`<g class="mark ${kind}" role="button" tabindex="0" aria-label=${m.name} data-opens=${m.open}
    aria-pressed=${String(at.query.open === m.open)} transform="translate(${m.x} ${y(m)})" onClick=${press}
    onKeyDown=${key}>${shapes[m.lane]}<text y=${m.lane === 3 ? 8 : 4}>${sign}</text></g>`;
}

export function Timeline({ at, story, session }) {
  const box = useRef();
  const [width, resize] = useState(0);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => resize(Math.max(box.current.clientWidth - 16, 480)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const drawn = useMemo(() => layout(story, width), [story.log, story.deliveries, width]);
  const n = (lane) => story.log.filter((h) => h.kind === nouns[lane]).length;
  const failed = story.deliveries.filter((d) => !answered(d)).length;
  const attempts = `${count(story.deliveries.length, "delivery attempt")} (${failed} failed)`;
  const text = story.log.length === 0 ? (story.ready || !session) && "Nothing has happened yet."
    : `${count(n(0), "message")}, ${count(n(1), "event")}, ${attempts}, ${count(n(3), "tool call")}.`;
  return html`<section class="timeline" aria-label="Timeline">
    <div class="line"><h2>Timeline</h2><p class="soft">${text}</p></div>
    <div class="drawing" ref=${box}>${drawn && html`
      <svg role="group" aria-label="Timeline of the session" width=${width} height=${bottom + 20}>
        <g aria-hidden="true">${lanes.map((title, i) => html`<path d="M0 ${top + i * high}H${width}" />
            <text x="0" y=${top + i * high + half + 10}>${title}</text>`)}<path d="M0 ${bottom}H${width}" />
          ${drawn.ticks.map((t) => html`<path d="M${t.x} ${top}V${bottom}" />
            <text class="tick" x=${t.x} y=${bottom + 15}>${t.text}</text>`)}
          ${drawn.links.map((l) => html`<path class=${l.kind} d="M${l.from.x} ${y(l.from)}L${l.to.x} ${y(l.to)}" />`)}
        </g>${drawn.placed.map((m) => html`<${Mark} key=${m.of[0].open} m=${m} at=${at} />`)}</svg>`}</div>
  </section>`;
}
