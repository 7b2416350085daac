// Faults: what is armed, sentences that arm one, and forms with every key.
import { html, useState } from "./standalone.module.js";
import { post, remove, store, webhooksOf } from "./store.js";
import { Do, Form } from "./act.js";
import { any, events } from "./journals.js";
import { keys, presets, sentence } from "./faultwords.js";
import { Choice, typed } from "./words.js";

// concerns reports whether a fault can happen to a head: it names no other head's webhook, and
// no path of another head.
const concerns = (head, f) => !head || (f.webhookId ? webhooksOf(head).some((r) => r.id === f.webhookId)
  : !store.state.heads.some((h) => h.id !== head.id && f.route?.includes(h.id)));

const armedOf = (head) => ["deliveries", "requests"].flatMap((kind) => store.state.faults[kind]
  .filter((f) => concerns(head, f)).map((f) => ({ kind, f }))).sort((a, b) => a.f.n - b.f.n);

export const armedFor = (head) => armedOf(head).length;

function Preset({ kind, preset: [sentence, begin, fixed], scope }) {
  const [draft, write] = useState({});
  const value = (key) => String(draft[key] ?? begin[key]);
  const arm = () => {
    const given = Object.keys(begin).map((key) => [key, typed(typeof begin[key], value(key))]);
    return post(`faults/${kind}`, { ...Object.fromEntries(given), ...fixed, ...scope });
  };
  const parts = sentence.split(/[{}]/).map((text, i) => {
    const [key, noun] = text.split(" ");
    if (i % 2 === 0) return { text, noun: "" };
    return { key, text: value(key), noun: noun ? ` ${noun}${value(key) === "1" ? "" : "s"}` : "" };
  });
  return html`<${Form} kind="line preset" name=${parts.map((p) => p.text + p.noun).join("")} act=${arm}>
    <p>${parts.map(({ key, text, noun }) => (key ? html`<input aria-label=${noun.trim() || key} value=${text} size=${
      Math.max(text.length, 2)} onInput=${(e) => write({ ...draft, [key]: e.target.value })} />${noun}` : text))}</p>
    <button>Arm</button><//>`;
}

function Full({ kind }) {
  const add = (form) => {
    const given = [...form.querySelectorAll("input")].filter((i) => (i.type === "checkbox" ? i.checked : i.value));
    const fault = given.map((i) => [i.name, i.type === "checkbox" || typed(typeof keys[kind][i.name], i.value)]);
    return post(`faults/${kind}`, Object.fromEntries(fault));
  };
  return html`<details class="card"><summary>Every key of a fault of ${kind}</summary>
    <${Form} kind="line" name="Fault of ${kind}" act=${add}>
      ${Object.entries(keys[kind]).map(([name, example]) => (example === true
        ? html`<label class="check"><input type="checkbox" name=${name} /> ${name}</label>`
        : html`<label>${name} <input name=${name} placeholder=${String(example)} size="12" /></label>`))}
    <button class="main">Arm</button><//></details>`;
}

export function Faults({ head }) {
  const [event, setEvent] = useState("");
  const [webhook, setWebhook] = useState("");
  const hooks = (head ? webhooksOf(head) : store.state.registrations).map((r) => String(r.id));
  const scopes = { deliveries: { ...(event && { event }), ...(webhook && { webhookId: +webhook }) }, requests: {} };
  const armed = armedOf(head);
  const group = (kind) => presets[kind].map((p) => html`
    <${Preset} key=${p[0]} kind=${kind} preset=${p} scope=${scopes[kind]} />`);
  return html`<section class="card" aria-label="Armed"><div class="line"><h2>Armed</h2>
      ${armed.length > 0 && html`<${Do} name="Clear faults" act=${() => remove("faults")} />`}</div>
    ${armed.length === 0 && html`<p>Nothing goes wrong now. Arm a fault below.</p>`}
    <ul>${armed.map(({ kind, f }) => html`<li key=${f.n} class="line"><span>${sentence(kind, f)}</span>
      <${Do} name="Remove" class="quiet" aria-label="Remove fault ${f.n}" act=${() =>
        remove(`faults/${f.n}`)} /></li>`)}</ul></section>
    <div class="cards"><section class="card"><h2>Deliveries</h2><div class="line">
        <${Choice} name="event" value=${event} options=${any(events)} choose=${setEvent} />
        <${Choice} name="webhook" value=${webhook} options=${any(hooks)} choose=${setWebhook} /></div>
        ${group("deliveries")}<p class="facts">An event for two webhooks counts twice.</p></section>
      <section class="card"><h2>Requests</h2>${group("requests")}
        <p class="facts">What this page does is exempt.</p></section></div>
    <${Full} kind="deliveries" /><${Full} kind="requests" />`;
}
