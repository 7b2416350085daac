// The regions Faults and Seed.
import { $, el, sync, attempt, count } from "./dom.js";
import { get, post, remove, state } from "./api.js";

const region = $("#faults");

// The keys of the control API, with their kinds.
const kinds = {
  requests: {
    title: "Fault of requests",
    keys: { method: "", route: "", times: 0, status: 0, body: "", retryAfter: "", latency: "", cut: "", cutBody: false, afterEffect: false, share: 0 },
    examples: { method: "GET", route: "/head/{id}", times: "1", status: "503", retryAfter: "2s", latency: "50ms", cut: "before", share: "0.2" },
  },
  deliveries: {
    title: "Fault of deliveries",
    keys: { webhookId: 0, event: "", times: 0, drop: false, duplicate: false, reorder: false, delay: "", corruptSignature: false, encoding: "", age: "" },
    examples: { webhookId: "1", event: "end_conversation", times: "1", delay: "2s", encoding: "base64", age: "48h" },
  },
};

function field(name, kind, example) {
  if (typeof kind === "boolean") return el("label", {}, el("input", { type: "checkbox", name }), " " + name);
  return el("label", {}, name + " ", el("input", { name, placeholder: example ?? "", autocomplete: "off" }));
}

// read returns the values of the form. An invalid number is sent as it is, and the
// emulator reports what is wrong.
function read(form, keys) {
  const fault = {};
  for (const input of form.elements) {
    const kind = keys[input.name];
    if (typeof kind === "boolean") {
      if (input.checked) fault[input.name] = true;
    } else if (input.name && input.value !== "") {
      const number = Number(input.value);
      fault[input.name] = typeof kind === "number" && !Number.isNaN(number) ? number : input.value;
    }
  }
  return fault;
}

for (const [kind, { title, keys, examples }] of Object.entries(kinds)) {
  const fields = Object.entries(keys).map(([name, value]) => field(name, value, examples[name]));
  const form = el("form", { class: "fault", "aria-label": title, novalidate: true }, el("h3", {}, title), ...fields, el("button", {}, "Add fault"));
  form.addEventListener("submit", async (e) => {
    e.preventDefault();
    await attempt(form.querySelector("button"), async () => {
      state.faults = await post("faults/" + kind, read(form, keys));
      form.reset();
      render();
    });
    mark(form);
  });
  $(".forms", region).append(form);
}

// mark shows the emulator's message beside the field that it names.
function mark(form) {
  const alert = form.querySelector("[role=alert]");
  for (const input of form.elements) input.removeAttribute("aria-invalid");
  if (!alert) return;
  const named = [...form.elements].find((i) => i.name && new RegExp(`\\b${i.name}\\b`).test(alert.textContent));
  if (!named) return;
  named.setAttribute("aria-invalid", "true");
  named.parentElement.after(alert);
}

const text = (fault) => Object.entries(fault).map(([key, value]) => `${key} ${value}`).join(", ") || "every one";

export function render() {
  const armed = [...state.faults.requests.map((f) => "Requests: " + text(f)), ...state.faults.deliveries.map((f) => "Deliveries: " + text(f))];
  const numbered = armed.map((line, i) => ({ line, key: `${i} ${line}` }));
  if (numbered.length === 0) numbered.push({ line: "There are no faults.", key: "none" });
  sync($(".armed", region), numbered, (f) => f.key, (f) => el("li", {}, f.line));
}

$(".clear", region).addEventListener("click", (e) => attempt(e.target, async () => {
  state.faults = await remove("faults");
  render();
}));

const seed = $("#seed");
const note = $(".note", seed);

$(".export", seed).addEventListener("click", (e) => attempt(e.target, async () => {
  const exported = await get("export" + ($(".keys", seed).checked ? "?keys=true" : ""));
  const url = URL.createObjectURL(new Blob([JSON.stringify(exported, null, 2) + "\n"], { type: "application/json" }));
  el("a", { href: url, download: "seed.json" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  note.textContent = "Exported.";
}));

$(".import", seed).addEventListener("change", (e) => attempt(e.target, async () => {
  note.textContent = "";
  const [file] = e.target.files;
  if (!file) return;
  try {
    const added = await post("seed", await file.text());
    note.textContent = `Imported ${count(added.heads.length, "head")}, ${count(added.visuals.length, "visual")}, ${count(added.registrations.length, "registration")}.`;
  } finally {
    e.target.value = "";
  }
}));

const dialog = $("dialog", seed);
$(".reset", seed).addEventListener("click", () => dialog.showModal());
$(".cancel", seed).addEventListener("click", () => dialog.close());
$(".confirm", seed).addEventListener("click", (e) => attempt(e.target, async () => {
  await post("reset");
  dialog.close();
}));
