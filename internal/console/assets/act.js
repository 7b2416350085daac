// Actions that may be refused, things to copy, and dialogs.
import { html, useEffect, useRef, useState } from "./standalone.module.js";
import { post } from "./store.js";

// useAction returns the words of the last refusal, and a function that runs an action.
export function useAction() {
  const [refusal, keep] = useState("");
  const run = async (action) => {
    keep("");
    try {
      await action();
    } catch (error) {
      keep(error.message);
    }
  };
  return [refusal, run];
}

export const Refusal = ({ text }) => text && html`<p role="alert">${text}</p>`;

// Do is a button with an action, whose refusal is shown beside it.
export function Do({ name, act, ...rest }) {
  const [refusal, run] = useAction();
  return html`<button type="button" ...${rest} onClick=${() => run(act)}>${name}</button>
    <${Refusal} text=${refusal} />`;
}

// Form acts with its element when it is sent. Its children may be a function of the refusal.
export function Form({ name, kind, act, children }) {
  const [refusal, run] = useAction();
  const send = (e) => {
    e.preventDefault();
    run(() => act(e.target));
  };
  return html`<form class=${kind} aria-label=${name} onSubmit=${send} novalidate>
    ${typeof children === "function" ? children(refusal) : html`${children}<${Refusal} text=${refusal} />`}</form>`;
}

// Copy copies a text, or shows it where the browser lets no page write to the clipboard.
export function Copy({ name, text }) {
  const [said, say] = useState("");
  const copy = async () => {
    const value = await text();
    await navigator.clipboard.writeText(value).then(() => say("copied"), () => say(value));
  };
  return html`<${Do} name=${name} act=${copy} /> <span class="said" aria-live="polite">${said}</span>`;
}

export const Line = ({ text }) => html`<pre>${text}</pre><${Copy} name="Copy line" text=${() => text} />`;

// Dialog is open while it is drawn. Its children are a function of what closes it.
export function Dialog({ title, onClose, children }) {
  const box = useRef();
  useEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} aria-label=${title} onClose=${onClose}>
    <h2>${title}</h2>${children(() => box.current.close())}
  </dialog>`;
}

export const Ask = ({ text, name, act, ...dialog }) => html`<${Dialog} ...${dialog}>${(close) => html`<p>${text}</p>
  <div class="line buttons"><${Do} name=${name} class="danger" act=${async () => { await act(); close(); }} />
    <button onClick=${close}>Cancel</button></div>`}<//>`;

const flags = ["startConversation", "endConversation", "timeoutConversation", "inactivityWarning"];

export const TurnOn = ({ head }) => html`<${Do} name="Turn delivery on"
  act=${() => post(`heads/${head.id}/enable-events`, { enableEvents: true })} />`;

// AddWebhook is a button whose dialog registers a URL for events of a head.
export function AddWebhook({ head }) {
  const [open, show] = useState(false);
  const add = async (form) => {
    const given = new FormData(form);
    const chosen = Object.fromEntries(flags.map((flag) => [flag, given.has(flag)]));
    await post("seed", { registrations: [{ headId: head.id, webhookUrl: given.get("webhookUrl"), ...chosen }] });
    form.closest("dialog").close();
  };
  const fields = (close) => (refusal) => html`
    <label class="wide">webhookUrl <input name="webhookUrl" autocomplete="off" aria-invalid=${Boolean(refusal)}
      placeholder="http://127.0.0.1:8080/events" /></label>
    ${flags.map((flag) => html`<label class="check"><input type="checkbox" name=${flag} checked /> ${flag}</label>`)}
    <${Refusal} text=${refusal} />
    <div class="line buttons"><button class="main">Add</button>
      <button type="button" onClick=${close}>Cancel</button></div>`;
  return html`<button onClick=${() => show(true)}>Add a webhook</button>
    ${open && html`<${Dialog} title="Add a webhook" onClose=${() => show(false)}>${(close) => html`
      <${Form} act=${add}>${fields(close)}<//>`}<//>`}`;
}
