// The panel at the right: one delivery, request or step in full.
import { html, useLayoutEffect, useRef } from "./standalone.module.js";
import { address, beside, go } from "./route.js";
import { get, post, useRead } from "./store.js";
import { Copy, Do, Refusal } from "./act.js";
import { Code, Table, Terms, Verdict, answered, chip, count, json, nextOf, outcome, pretty, recipients, refused, span,
  status, time } from "./words.js";

function Delivery({ id }) {
  const path = "deliveries/" + id;
  const { value: d, error } = useRead(path);
  if (!d) return html`<${Refusal} text=${error} />`;
  const copy = (what) => async () => (await get(`${path}/${what}`)).text;
  const session = address({ head: d.headId, query: { session: d.sessionId } });
  return html`<h2>${d.event}${d.attempt > 0 && `, attempt ${d.attempt}`}</h2>
    <${Verdict} good=${answered(d)} text=${outcome(d)} />
    <div class="line"><${Do} name="Resend" class="main" act=${() => post(path + "/resend")} />
      <${Copy} name="Copy as curl" text=${copy("curl")} />
      <${Copy} name="Copy as Go test" text=${copy("go-test")} /></div>
    <${Terms} pairs=${[["Time", time(d.at)], ["Webhook", `${d.webhookId}, ${d.receiver}`],
      ["Session", html`<a href=${session}>${d.sessionId.slice(0, 8)}</a>`],
      ["Duration", d.attempt ? span(d.took) : "no attempt was made"],
      ["Next attempt", nextOf(d)],
      ["Signature", html`<b class=${d.signature === "right" ? "good" : "bad"}>signature ${d.signature}</b>`]]} />
    <h3>Headers</h3><${Terms} pairs=${Object.entries(d.headers)} />
    <${Code} label="Body" text=${pretty(d.body)} /><${Code} label="Answer" text=${d.reply} />`;
}

function Request({ id }) {
  const { value: r, error } = useRead("requests/" + id);
  if (!r) return html`<${Refusal} text=${error} />`;
  return html`<h2>${r.method} ${r.path}</h2>
    <${Verdict} good=${!refused(r)} text=${status(r)} />
    <${Terms} pairs=${[["Time", time(r.at)], ["Duration", span(r.took)], ["Query", r.query || "none"]]} />
    <${Code} label="Body" text=${pretty(r.body)} />
    ${r.method === "PUT" && html`<h3>Changes of the head</h3>${r.changes.length === 0 ? "Nothing changed." : html`
      <${Table} kind="difference" columns=${["Field", "Before", "After"]}>${r.changes.map((c) => html`<tr>
        <th scope="row">${c.field}</th><td><del>${json(c.before)}</del></td>
        <td><ins>${json(c.after)}</ins></td></tr>`)}<//>`}`}
    ${r.ignored.length > 0 && html`<h3>Read-only fields</h3>
      <${Terms} pairs=${r.ignored.map((f) => [f.field, `ignored: ${json(f.value)}`])} />`}`;
}

const stepOf = (story, open) => story.log.find((h) => "h" + h.id === open);

const Links = ({ at, opens, story }) => html`<ul>${opens.map((open) => {
  const d = story.deliveries.find((x) => "d" + x.id === open);
  const h = stepOf(story, open);
  if (!d && !h) return "";
  const name = d ? chip(d) : `${h.kind} ${h.event ?? h.text ?? h.tool}`;
  return html`<li key=${open}><a href=${beside(at, { open })}>${name}</a> <time>${time((d ?? h).at)}</time></li>`;
})}</ul>`;

function Step({ h, at, story }) {
  const opens = story.deliveries.filter((d) => d.eventId === h.id).map((d) => "d" + d.id);
  return html`<h2>${h.event ?? h.kind}</h2>
    <${Terms} pairs=${[["Time", time(h.at)], h.text && ["Text", h.text], h.event && ["Delivered", recipients(h)]]} />
    ${opens.length > 0 && html`<h3>Attempts</h3><${Links} at=${at} opens=${opens} story=${story} />`}`;
}

const ToolCall = ({ h }) => html`<h2>${h.tool}</h2>
  <${Verdict} good=${!h.problem} text=${h.problem ? `✕ ${h.problem}` : `✓ ${h.message}`} />
  <${Terms} pairs=${[["Time", time(h.at)], ["Status", String(h.status ?? 0)], ["Duration", span(h.took ?? "0s")]]} />
  <${Code} label="Request" text=${pretty(h.sent)} /><${Code} label="Reply" text=${pretty(h.reply)} />`;

function contentOf(open, at, story) {
  const [, kind, id] = /^([dr])(\d+)$/.exec(open) ?? [];
  if (kind === "d") return ["Delivery", html`<${Delivery} key=${open} id=${id} />`];
  if (kind === "r") return ["Request", html`<${Request} key=${open} id=${id} />`];
  const h = stepOf(story, open);
  if (h?.tool) return ["Tool call", html`<${ToolCall} h=${h} />`];
  if (h) return ["Step", html`<${Step} h=${h} at=${at} story=${story} />`];
  const opens = open.split(",");
  if (opens.length > 1) {
    const noun = stepOf(story, opens[0])?.kind ?? "attempt";
    return ["Step", html`<h2>${count(opens.length, noun)}</h2><${Links} at=${at} opens=${opens} story=${story} />`];
  }
  return ["Step", story.ready && html`<p>There is no step “${open}” in this session.</p>`];
}

// Panel takes the focus, and gives it back to what opened it.
export function Panel({ at, story }) {
  const box = useRef();
  const opener = useRef();
  const { open } = at.query;
  useLayoutEffect(() => {
    const now = document.activeElement;
    const lost = now === document.body || box.current.contains(now);
    if (!opener.current || !lost) opener.current = { now, open };
    box.current.focus({ preventScroll: true });
    box.current.scrollTop = 0;
  }, [open]);
  // After two frames the timeline has its new width; marks have joined or parted.
  useLayoutEffect(() => () => requestAnimationFrame(() => requestAnimationFrame(() => {
    const was = opener.current;
    const all = [...document.querySelectorAll("[data-opens]")];
    const same = all.filter((e) => e.tagName === was.now.tagName); // a mark, and not its row
    const named = (e) => e.dataset.opens.split(",").includes(was.open.split(",")[0]);
    const back = was.now.isConnected && was.now !== document.body ? was.now
      : same.find((e) => e.dataset.opens === was.open) ?? same.find(named) ?? all.find(named);
    if (document.activeElement === document.body) back?.focus();
  })), []);
  const [name, content] = contentOf(open, at, story);
  return html`<section class="panel" aria-label=${name} tabindex="-1" ref=${box}>
    <button class="quiet close" aria-label="Close" onClick=${() => go(beside(at, { open: "" }))}></button>
    ${content}</section>`;
}
