// The tools of a head, each with a form that calls it.
import { html, useState } from "./standalone.module.js";
import { post, sessionsOf, store, useRead } from "./store.js";
import { Form, Line, Refusal } from "./act.js";
import { Code, Verdict, pretty, typed } from "./words.js";

const Outcome = ({ call }) => html`
  <${Verdict} good=${!call.problem} text=${call.problem ? `✕ ${call.problem}` : `✓ ${call.message}`} />
  <${Code} label="Request" text=${pretty(JSON.stringify(call.sent))} />
  <${Code} label="Reply, status ${call.status}" text=${pretty(call.reply)} />`;

// ToolForm calls a tool in the session that enter returns. A short one shows no outcome.
export function ToolForm({ tool, enter, short }) {
  const [call, keep] = useState();
  const id = (n) => `${short ? "model" : tool.name}-${n}`;
  const send = async (form) => {
    const values = [...form.querySelectorAll("input")].map((input) => input.value);
    const given = tool.parameters.map((p, i) => [p.name, values[i] && typed(p.type, values[i])]);
    const body = { tool: tool.name, arguments: Object.fromEntries(given.filter(([, value]) => value !== "")) };
    keep(await post(`sessions/${await enter()}/tool-calls`, body));
  };
  return html`<${Form} name=${tool.name} kind=${short ? "line" : "rows"} act=${send}>
    ${tool.parameters.map((p, n) => html`<div class="field" key=${p.name}><label for=${id(n)}>${p.name}</label>
      <input id=${id(n)} autocomplete="off" aria-describedby=${id(n) + "-hint"} />
      <p class="facts" id=${id(n) + "-hint"}>${[p.type, p.description].filter(Boolean).join(": ")}</p></div>`)}
    <div><button class="main">Call tool</button></div>
    <div aria-live="polite">${call && !short && html`<${Outcome} call=${call} />`}</div><//>`;
}

function NoTool({ head }) {
  const settings = `{"conversationSettings":{"tools":[{"name":"opening_hours","description":"Tells the hours.",` +
    `"url":"'"$TOOL_URL"'","parameters":[{"name":"day","type":"string","description":"Day of the week."}]}]}}`;
  const line = `curl -sS -X PUT -H "Authorization: Bearer $HEADS_TOKEN" -H 'Content-Type: application/json' ` +
    `${location.origin}/head/${head.id}/conversation-settings -d '${settings}'`;
  return html`<div class="empty"><p>This head has no tool. Add one, and call it as the head's model would:</p>
    <${Line} text=${line} /></div>`;
}

export function Tools({ head }) {
  const { value, error } = useRead(`heads/${head.id}`, store.version);
  const open = sessionsOf(head).filter((s) => !s.closed).at(-1);
  const enter = async () => (open ?? await post("sessions", { headId: head.id })).id;
  if (!value) return html`<${Refusal} text=${error} />`;
  if (value.forms.length === 0) return html`<${NoTool} head=${head} />`;
  return html`<div class="cards">${value.forms.map((tool) => html`<section class="card" key=${tool.name}>
      <h2>${tool.name}</h2><p>${tool.description}</p><${ToolForm} tool=${tool} enter=${enter} /></section>`)}</div>
    <p class="facts">A call is made in ${open ? `the open session ${open.id.slice(0, 8)}` : "a new session"}.</p>`;
}
