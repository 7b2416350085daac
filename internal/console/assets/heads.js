// The list of the heads, and the top of the page of a head.
import { html, useEffect, useMemo, useRef, useState } from "./standalone.module.js";
import { address, go, parts } from "./route.js";
import { post, store } from "./store.js";
import { Copy, Do } from "./act.js";
import { count, mode, nameOf } from "./words.js";

const Badge = ({ head }) => html`<span class="badge ${mode(head)}">${mode(head)}</span>`;

export const Number = ({ n }) => n > 0 && html` <span class="number">${n}</span>`;

const has = (head, words) => {
  const text = [head.name, head.id, head.publicId, mode(head), head.ttsProvider].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
};

function Row({ head, part, chosen, open = [], webhooks = [] }) {
  const facts = [`delivery ${head.enableEvents ? "on" : "off"}`, open.length > 0 && `${open.length} open`,
    webhooks.length ? count(webhooks.length, "webhook") : "no webhook"];
  return html`<li><a href=${address({ head: head.id, part })} aria-current=${chosen ? "page" : null}>${nameOf(head)}</a>
    <${Badge} head=${head} /><p class="facts">${facts.filter(Boolean).join(" · ")}</p></li>`;
}

export function Heads({ at, chosen }) {
  const [text, search] = useState("");
  const list = useRef();
  const { heads, sessions, registrations } = store.state;
  const shown = useMemo(() => heads.filter((h) => has(h, text.toLowerCase().split(/\s+/))), [heads, text]);
  useEffect(() => list.current.querySelector("li:has([aria-current])")?.scrollIntoView({ block: "nearest" }), [chosen]);
  const open = (e) => {
    if (e.key === "Enter" && shown[0]) go(address({ head: shown[0].id, part: at.part }));
  };
  const rows = useMemo(() => {
    const by = (x) => x.headId;
    const [opened, hooks] = [Map.groupBy(sessions.filter((s) => !s.closed), by), Map.groupBy(registrations, by)];
    return shown.map((h) => html`<${Row} key=${h.id} head=${h} part=${at.part} chosen=${h.id === chosen}
      open=${opened.get(h.id)} webhooks=${hooks.get(h.id)} />`);
  }, [shown, sessions, registrations, chosen, at.part]);
  return html`<nav aria-label="Heads"><div class="search"><input type="search" aria-label="Search heads"
      placeholder="Search heads" value=${text} onInput=${(e) => search(e.target.value)} onKeyDown=${open} />
      <p class="facts">${text ? `${shown.length} of ${heads.length}` : count(heads.length, "head")}</p></div>
    <ul ref=${list}>${rows}</ul></nav>`;
}

const Switch = ({ head, name, path }) => html`<div class="line switch"><${Do} role="switch" aria-label=${name}
  aria-checked=${String(head[name])} act=${() => post(`heads/${head.id}/${path}`, { [name]: !head[name] })} />
  <span>${name} <b>${head[name] ? "on" : "off"}</b></span></div>`;

export const HeadTop = ({ head }) => html`<div><div class="line title"><h1 tabindex="-1">${nameOf(head)}</h1>
    <${Badge} head=${head} /> <code>${head.id}</code> <${Copy} name="Copy id" text=${() => head.id} /></div>
  <div class="line switches"><${Switch} head=${head} name="enableEvents" path="enable-events" />
    <${Switch} head=${head} name="videoStreaming" path="video-streaming" />
    ${head.splitter ? html`<span>splitter <b>on</b></span>`
    : html`<${Do} name="Enable splitter" act=${() => post(`heads/${head.id}/splitter`)} />`}
  </div></div>`;

export function Parts({ at, head, faults }) {
  const numbers = { tools: head.tools.length, faults };
  return html`<nav class="parts" aria-label="Parts of the head">${parts.map((part) => html`
    <a href=${address({ head: head.id, part })} aria-current=${part === at.part ? "page" : null}>${
      part[0].toUpperCase() + part.slice(1)}<${Number} n=${numbers[part]} /></a>`)}
  </nav>`;
}
