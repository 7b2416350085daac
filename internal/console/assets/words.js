// How the page writes what it shows. All of it becomes text, never markup.
import { html } from "./standalone.module.js";
import { parse } from "./store.js";

export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// pretty returns a JSON text with line breaks, and any other text as it is.
export function pretty(text) {
  const value = parse(text);
  return value === text ? text : JSON.stringify(value, null, 2);
}

// typed reads a text as a type. The emulator says in its own words what is wrong with it.
export const typed = (type, text) => (!type || type === "string" ? text : parse(text));

export const time = (at) => new Date(at).toLocaleTimeString("en-GB", {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
});

// instant returns a time in milliseconds, with what Date leaves out of its fraction.
export const instant = (at) => Date.parse(at) + Number("0." + (/\.\d{3}(\d+)/.exec(at)?.[1] ?? "0"));

const units = { h: 3600000, m: 60000, s: 1000, ms: 1, "µs": 1e-3, ns: 1e-6 };

// millis reads a duration such as 1m2.5s.
export function millis(text) {
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/([\d.]+)(h|ms|m|s|µs|ns)/g)) sum += n * units[unit];
  return sum;
}

export function span(text) {
  const ms = millis(text);
  return ms >= 1000 ? `${+(ms / 1000).toFixed(2)} s` : `${+ms.toFixed(ms < 10 ? 2 : 0)} ms`;
}

export const answered = (d) => !d.error && d.status >= 200 && d.status < 300;
export const refused = (r) => r.status === 0 || r.status >= 400;

export const status = (r) => `${refused(r) ? "✕" : "✓"} ${r.status || "the connection was cut"}`;

export const outcome = (d) => [answered(d) ? "✓" : "✕", d.status || "", d.error].filter(Boolean).join(" ");

// nextOf returns when the attempt after d begins.
export const nextOf = (d) => (d.final || !millis(d.retryIn) ? "none follows"
  : time(Date.parse(d.at) + millis(d.took) + millis(d.retryIn)));

export function chip(d) {
  const how = d.error ? d.error.split(": ").at(-1).slice(0, 60) : d.status;
  return `${answered(d) ? "✓" : "✕"} webhook ${d.webhookId}${d.attempt > 1 ? `, attempt ${d.attempt}` : ""}: ${how}`;
}

export const recipients = (h) => (h.receivers ? `to ${count(h.receivers, "webhook")}` : `to no webhook: ${h.why}`);

export const mode = (head) => (head.videoStreaming ? "streaming" : "legacy");
export const nameOf = (head) => head.name || head.id;

// Web shows the whole URL of a web page as a link, and anything else as text.
export function Web({ text }) {
  const url = URL.canParse(text) && new URL(text);
  if (!url || text.includes("[hidden]") || !/^https?:$/.test(url.protocol)) return text;
  return html`<a href=${url.href} rel="noreferrer noopener" target="_blank">${text}</a>`;
}

export const Terms = ({ pairs }) => html`<dl>${pairs.filter(Boolean).map(([name, value]) => html`
  <dt>${name}</dt><dd>${value}</dd>`)}</dl>`;

export const Code = ({ label, text }) => html`
  <h3>${label}</h3><pre tabindex="0" role="group" aria-label=${label}>${text || "none"}</pre>`;

export const json = (value) => JSON.stringify(value, null, typeof value === "object" ? 1 : 0);

export const Verdict = ({ good, text }) => html`<p class="verdict ${good ? "good" : "bad"}">${text}</p>`;

export const Table = ({ kind, columns, children }) => html`<table class=${kind}>
  <thead><tr>${columns.map((c) => html`<th scope="col">${c}</th>`)}</tr></thead><tbody>${children}</tbody></table>`;

// Choice is a select. An option is a text, or a value and its text.
export const Choice = ({ name, value, options, choose }) => html`<label>${name} <select value=${value}
  onChange=${(e) => choose(e.target.value)}>${options.map((o) => [o].flat()).map(([v, text = v]) => html`
    <option key=${v} value=${v}>${text}</option>`)}</select></label>`;
