// Seed and reset.
import { html, useRef, useState } from "./standalone.module.js";
import { get, post } from "./store.js";
import { Ask, Do, Refusal, useAction } from "./act.js";
import { count } from "./words.js";

export function Seed() {
  const keys = useRef();
  const [refusal, run] = useAction();
  const [added, say] = useState("");
  const [asking, ask] = useState(false);
  const download = async () => {
    const text = JSON.stringify(await get(`export?keys=${keys.current.checked}`), null, 2) + "\n";
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "seed.json";
    link.click();
  };
  const upload = ({ target }) => {
    const [file] = target.files;
    say("");
    if (file) {
      run(async () => {
        const { heads, visuals, registrations } = await post("seed", await file.text());
        const webhooks = count(registrations.length, "webhook");
        say(`Added ${count(heads.length, "head")}, ${count(visuals.length, "visual")}, ${webhooks}.`);
      });
    }
    target.value = "";
  };
  return html`<section class="card"><h2>Export</h2>
      <p>The heads, visuals, tools and webhooks as JSON. To start with them: <code>-seed-file seed.json</code></p>
      <div class="line"><${Do} name="Export seed" act=${download} />
        <label class="check"><input type="checkbox" ref=${keys} /> With keys</label></div></section>
    <section class="card"><h2>Import</h2><p>Adds all that a seed has, or nothing.</p>
      <label class="wide">Import seed <input type="file" accept=".json,application/json" onChange=${upload} /></label>
      <p aria-live="polite">${added}</p><${Refusal} text=${refusal} /></section>
    <section class="card"><h2>Reset</h2><p>Restores the state of the start.</p>
      <button class="danger" onClick=${() => ask(true)}>Reset</button></section>
    ${asking && html`<${Ask} title="Reset?" name="Reset" act=${() => post("reset")} onClose=${() => ask(false)}
      text="All changes, sessions, deliveries, requests and faults are lost." />`}`;
}
