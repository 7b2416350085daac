// The fields of a head, as a form made from the schema of its update.
import { html, useRef, useState } from "./standalone.module.js";
import { get, post, store, useRead } from "./store.js";
import { Do, Form, Refusal } from "./act.js";
import { Table, Web, count, json, typed } from "./words.js";

const how = { array: "One a line.", object: "JSON." };

function fieldsOf({ components: { schemas } }) {
  const { id: _, ...fields } = schemas.HeadUpdate.properties;
  return Object.entries(fields).map(([name, given]) => {
    const schema = given.$ref ? schemas[given.$ref.split("/").at(-1)] : given;
    const [type] = [schema.type].flat();
    return { name, type, hint: [schema.description, how[type]].filter(Boolean).join(" ") };
  });
}

const hidden = (value) => typeof value === "string" && value.includes("[hidden]");

// written is a value as its field has it. What is hidden can only be replaced.
function written(type, value) {
  if (type === "boolean") return value === true;
  if (value === undefined || value === null || hidden(value)) return "";
  if (type === "array" && Array.isArray(value)) return value.join("\n");
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// read returns the value of a field.
const read = (type, text) => (type === "boolean" ? text
  : type === "array" ? text.split("\n").filter(Boolean) : typed(type, text));

function Field({ field: { name, type, hint }, value, draft, write, refusal }) {
  const given = { id: "field-" + name, "aria-describedby": "hint-" + name, "aria-invalid": refusal && "true" };
  const now = draft ?? written(type, value);
  const input = type === "boolean"
    ? html`<input type="checkbox" ...${given} checked=${now} onChange=${(e) => write(name, e.target.checked)} />`
    : html`<textarea rows="1" ...${given} class=${type} value=${now} spellcheck=${false} onInput=${(e) =>
        write(name, e.target.value)} placeholder=${value === null || hidden(value) ? `${value}` : ""} />`;
  return html`<div class="field ${draft !== undefined && "changed"}"><label for=${given.id}>${name}</label>
    ${input}<p class="facts" id="hint-${name}">${hint}</p><${Refusal} text=${refusal} /></div>`;
}

function Reveal({ head }) {
  const [shown, show] = useState({});
  const whole = shown.of === head.address && shown.address;
  const reveal = async () => show({ of: head.address, ...await get(`heads/${head.id}/address`) });
  return html`<div class="line">Access URL <code><${Web} text=${whole || head.address} /></code>
    ${!whole && html`<span class="soft">without its key</span> <${Do} name="Reveal" act=${reveal} />`}</div>`;
}

function SendJSON({ head }) {
  const [text, write] = useState("");
  const [said, say] = useState("");
  const send = async () => {
    say("");
    await post(`heads/${head.id}/update`, text);
    say("Sent. Requests shows what it changed, and what was ignored.");
  };
  return html`<details class="card"><summary>Send JSON</summary><${Form} kind="rows" act=${send}>
    <p class="soft">Any object, as <code>PUT /head/update</code> takes it: also read-only fields and wrong types.</p>
    <textarea class="object" aria-label="JSON" rows="4" spellcheck=${false} value=${text}
      onInput=${(e) => write(e.target.value)} placeholder='{"greetings": "Welcome!"}' />
    <div><button class="main">Send</button></div><p aria-live="polite">${said}</p><//></details>`;
}

const Others = ({ fields }) => html`<details class="card"><summary>Read-only fields</summary>
  <${Table} columns=${["Field", "Value"]}>${fields.map(([name, value]) => html`<tr><th scope="row">${name}</th>
    <td>${typeof value === "string" ? html`<${Web} text=${value} />` : json(value)}</td></tr>`)}<//></details>`;

const drafts = new Map(); // the unsent fields of each head

export function Configuration({ head }) {
  const { value: api, error } = useRead("openapi.json");
  const { value, error: unread } = useRead(`heads/${head.id}`, store.version);
  const [draft, keep] = useState(drafts.get(head.id) ?? {});
  const [said, say] = useState("");
  const note = useRef();
  if (!api || !value) return html`<${Refusal} text=${error ?? unread} />`;
  const fields = fieldsOf(api);
  const changed = fields.filter((f) => f.name in draft);
  const names = changed.map((f) => f.name).join(", ");
  const set = (next, text) => {
    drafts.set(head.id, next);
    keep(next);
    say(text);
  };
  const write = (name, text) => {
    const { [name]: _, ...rest } = draft;
    const { type } = fields.find((f) => f.name === name);
    set(text === written(type, value.fields[name]) ? rest : { ...draft, [name]: text }, "");
  };
  const done = (text) => {
    set({}, text);
    note.current.focus();
  };
  const save = async () => {
    const body = changed.map((f) => [f.name, read(f.type, draft[f.name])]);
    await post(`heads/${head.id}/update`, Object.fromEntries(body));
    done(`Saved ${names}.`);
  };
  return html`<${Reveal} head=${head} />
    <${Form} name="Fields of the head" act=${save}>${(refusal) => {
      const named = refusal && changed.find((f) => new RegExp(`\\b${f.name}\\b`).test(refusal));
      return html`<div class="fields">${fields.map((f) => html`<${Field} key=${f.name} field=${f} write=${write}
          value=${value.fields[f.name]} draft=${draft[f.name]} refusal=${f === named && refusal} />`)}</div>
        <div class="line ${names && "save"}"><p ref=${note} tabindex="-1" aria-live="polite">${
          names ? `${count(changed.length, "field")} changed: ${names}` : said}</p>
          ${names && html`<button class="main">Save</button><${Do} name="Undo" act=${() => done("Undone.")} />`}
          <${Refusal} text=${!named && refusal} /></div>`;
    }}<//>
    <${SendJSON} head=${head} />
    <${Others} fields=${Object.entries(value.fields).filter(([name]) => !fields.some((f) => f.name === name))} />`;
}
