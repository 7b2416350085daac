// The keys of the page, and the dialog that lists them.
import { html, useEffect, useState } from "./standalone.module.js";
import { Dialog } from "./act.js";
import { address, beside, go, parts, route } from "./route.js";
import { store } from "./store.js";

const list = [["/", "search the heads"], ["j k", "next and previous head"], ["1 – 6", "parts of the head"],
  ["m", "write a message"], ["s", "start a session"], ["Esc", "close"], ["?", "these keys"]];

const on = () => localStorage.getItem("keys") !== "off";

// press clicks or focuses the element of a key, after the conversation is drawn.
function press(head, key) {
  const at = route();
  if (at.part !== parts[0] || at.page !== "head") go(address({ head: head.id }));
  setTimeout(() => {
    const found = document.querySelector(`[data-key=${key}]`);
    found?.focus();
    if (found?.matches("button")) found.click();
  });
}

export function useKeys(chosen, help) {
  useEffect(() => {
    const listen = (e) => {
      const at = route();
      if (e.defaultPrevented || e.ctrlKey || e.altKey || e.metaKey || document.querySelector("dialog[open]")) return;
      if (e.key === "Escape") return at.query.open && go(beside(at, { open: "" }));
      if (!on() || e.target.closest?.("input, textarea, select")) return;
      const heads = store.state?.heads ?? [];
      const step = { j: 1, k: -1 }[e.key];
      const next = chosen ? heads[heads.findIndex((h) => h.id === chosen.id) + step] : heads[0];
      const part = parts[e.key - 1];
      if (e.key === "?") help();
      else if (e.key === "/") document.querySelector("[type=search]").focus();
      else if (step && next) go(address({ head: next.id, part: at.part }));
      else if (part && chosen) go(address({ head: chosen.id, part }));
      else if (/^[ms]$/.test(e.key) && chosen) press(chosen, e.key);
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [chosen]);
}

export function Keys({ onClose }) {
  const [used, use] = useState(on());
  const turn = (e) => {
    localStorage.setItem("keys", e.target.checked ? "on" : "off");
    use(e.target.checked);
  };
  return html`<${Dialog} title="Keys" onClose=${onClose}>${(close) => html`
    <dl>${list.map(([key, does]) => html`<dt><code>${key}</code></dt><dd>${does}</dd>`)}</dl>
    <p class="soft">They do nothing while you write in a field.</p>
    <label class="check"><input type="checkbox" checked=${used} onChange=${turn} /> Use these keys</label>
    <div class="line buttons"><button onClick=${close}>Close</button></div>`}<//>`;
}
