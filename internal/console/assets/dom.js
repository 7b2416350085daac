// Helpers for the page. Text from outside is only inserted as text.

export const $ = (selector, root = document) => root.querySelector(selector);

// el returns an element: el("a", {href: url}, "text", child).
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c != null));
  return node;
}

// svg is el for SVG.
export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// set changes a text only if it differs, so a selection is kept.
export function set(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// sync makes the children of a parent those of a list, one element for each key. An
// element is kept from one call to the next, with its focus and what is open in it.
export function sync(parent, items, keyOf, create, update) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  let next = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let node = old.get(key);
    if (!node) {
      node = create(item);
      node.dataset.key = key;
    }
    old.delete(key);
    update?.(node, item);
    if (node === next) next = next.nextElementSibling;
    else parent.insertBefore(node, next);
  }
  for (const node of old.values()) node.remove();
}

// link returns an anchor for the whole URL of a web page, and plain text for anything else.
export function link(text) {
  let url;
  try {
    url = new URL(text);
  } catch {
    return document.createTextNode(text);
  }
  const whole = !text.includes("[hidden]");
  if (!whole || (url.protocol !== "https:" && url.protocol !== "http:")) return document.createTextNode(text);
  return el("a", { href: url.href, rel: "noreferrer noopener", target: "_blank" }, text);
}

// terms returns a description list of pairs; a value may be a node.
export function terms(pairs) {
  return el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// count returns a number with its noun, as in "1 message".
export const count = (n, noun) => `${n} ${noun}${n === 1 ? "" : "s"}`;

// pretty returns a JSON text with line breaks, and any other text as it is.
export function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

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

// copyButton copies the text that text() resolves to, and shows it.
export function copyButton(name, text, shows = false) {
  const button = el("button", { type: "button" }, name);
  const said = el("span", { class: "note", "aria-live": "polite" });
  button.addEventListener("click", () => attempt(button, async () => {
    const value = await text();
    if (shows) said.replaceChildren(el("pre", {}, value));
    try {
      await navigator.clipboard.writeText(value);
      if (!shows) said.textContent = " copied";
    } catch {
      if (!shows) said.textContent = " " + value;
    }
  }));
  return el("span", {}, button, said);
}

// attempt calls a function, and shows the message of a refusal beside a control.
export async function attempt(control, act) {
  const place = control.closest("form") ?? control.closest(".box") ?? control.parentElement;
  for (const alert of place.querySelectorAll("[role=alert]")) alert.remove();
  control.removeAttribute("aria-invalid");
  try {
    return await act();
  } catch (error) {
    const alert = el("p", { role: "alert" }, error.message);
    const field = control.matches("form") ? control.querySelector("textarea, input") : null;
    field?.setAttribute("aria-invalid", "true");
    if (field) field.after(alert);
    else place.append(alert);
    return undefined;
  }
}
