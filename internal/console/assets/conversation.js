// A session of a head: what was said, what came of it, what the visitor does next.
import { html, useLayoutEffect, useRef, useState } from "./standalone.module.js";
import { beside, go } from "./route.js";
import { post, sessionsOf, store, useRead, webhooksOf } from "./store.js";
import { AddWebhook, Do, Refusal, TurnOn, useAction } from "./act.js";
import { Choice, answered, chip, recipients, time } from "./words.js";
import { Timeline } from "./timeline.js";
import { ToolForm } from "./tools.js";

// sessionOf returns the session that the address names, or else the head's newest.
export function sessionOf(head, at) {
  const list = sessionsOf(head);
  return at.query.session ? list.find((s) => s.id === at.query.session) : list.at(-1);
}

const said = { start: "The visitor opened the session.", inactive: "The visitor was idle.",
  timeout: "The session timed out.", close: "The visitor closed the window." };

const opener = (at, open) => ({ type: "button", "data-opens": open, onClick: () => go(beside(at, { open })) });

function Step({ h, at, attempts }) {
  const stamp = html`<time>${time(h.at)}</time>`;
  const open = opener(at, "h" + h.id);
  if (h.kind === "message") return html`<li class="visitor"><p class="bubble">${h.text}</p>${stamp}</li>`;
  if (h.kind === "tool call") {
    return html`<li class="tool ${h.problem ? "bad" : "good"}"><button class="bubble" ...${open}>
      <b>${h.problem ? "✕" : "✓"} ${h.tool}</b> ${h.problem || h.message}</button>${stamp}</li>`;
  }
  if (h.kind !== "event") return html`<li>${said[h.kind]} ${stamp}</li>`;
  return html`<li><button class="link" ...${open}>${h.event}</button> ${recipients(h)} ${stamp}
    <span class="line chips">${attempts.map((d) => html`<button key=${d.id} class="chip ${answered(d) ? "good" : "bad"}"
      ...${opener(at, "d" + d.id)}>${chip(d)}</button>`)}</span></li>`;
}

// Transcript follows its end for a reader who is there.
function Transcript({ at, story, session }) {
  const list = useRef();
  const end = useRef(0); // its beginning
  const measure = ({ target: l }) => {
    end.current = l.scrollHeight - l.clientHeight - 24;
  };
  useLayoutEffect(() => {
    const target = list.current;
    if (target.scrollTop >= end.current) target.scrollTop = target.scrollHeight;
    measure({ target });
  });
  const attempts = Map.groupBy(story.deliveries, (d) => d.eventId);
  const spoken = story.log.some((h) => h.kind === "message");
  return html`<ol class="transcript" aria-label="Transcript" tabindex="0" ref=${list} onScroll=${measure}>
    ${story.log.map((h) => html`<${Step} key=${h.id} h=${h} at=${at} attempts=${attempts.get(h.id) ?? []} />`)}
    ${spoken && html`<li key="model">No model answers here. The emulator delivers the events; call a tool to play the
      model.</li>`}
    ${!session && html`<li key="none">Start a session, or write a message below.</li>`}
  </ol>`;
}

// Hints say what keeps events from being delivered, each with its remedy.
const Hints = ({ head }) => html`${!head.enableEvents && html`<div class="line hint"><span><code>enableEvents</code> is
    off, so no event is delivered.</span> <${TurnOn} head=${head} /></div>`}
  ${webhooksOf(head).length === 0 && html`<div class="line hint"><span>This head has no webhook.</span>
    <${AddWebhook} head=${head} /></div>`}`;

const drafts = new Map(); // the unsent message of each head

function Visitor({ head, session, enter }) {
  const [text, write] = useState(drafts.get(head.id) ?? "");
  const keep = (value) => {
    drafts.set(head.id, value);
    write(value);
  };
  const [refusal, run] = useAction();
  const send = (e) => {
    e.preventDefault();
    run(async () => {
      await post(`sessions/${await enter()}/message`, { text });
      keep("");
    });
  };
  const act = (name, action) => html`<button type="button" onClick=${() => run(() => {
    if (!session) throw new Error("there is no session yet; start one, or send a message");
    return post(`sessions/${session.id}/${action}`);
  })}>${name}</button>`;
  return html`<form class="line" aria-label="What the visitor does" onSubmit=${send}>
    <input aria-label="Message" data-key="m" value=${text} onInput=${(e) => keep(e.target.value)} autocomplete="off"
      placeholder="Write as the visitor" /><button class="main">Send</button>
    ${act("Be idle", "inactive")}${act("Time out", "timeout")}${act("Close window", "close")}
    <${Refusal} text=${refusal} /></form>`;
}

// Model calls a tool in the session, as the head's model would.
function Model({ head, enter }) {
  const { value } = useRead(`heads/${head.id}`, store.version);
  const [chosen, choose] = useState("");
  const forms = value?.forms ?? [];
  const tool = forms.find((f) => f.name === chosen);
  const options = [["", "call a tool"], ...forms.map((f) => f.name)];
  return html`<div class="line"><${Choice} name="As the model" value=${chosen} options=${options} choose=${choose} />
    ${tool && html`<${ToolForm} key=${tool.name} tool=${tool} enter=${enter} short />`}</div>`;
}

export function Conversation({ at, head, story }) {
  const sessions = sessionsOf(head).slice(-100).reverse();
  const session = sessionOf(head, at);
  const show = (id) => go(beside(at, { session: id, open: "" }));
  const start = async () => {
    const started = await post("sessions", { headId: head.id });
    store.state.sessions.push(started); // until the state is read again
    show(started.id);
    return started.id;
  };
  const enter = () => (session && !session.closed ? session.id : start());
  const options = sessions.map((s) => [s.id, s.id.slice(0, 8) + (s.closed ? ", closed" : "")]);
  return html`<div class="line"><${Do} name="Start session" data-key="s" act=${start} />
      ${session && html`<${Choice} name="Session" value=${session.id} options=${options} choose=${show} />`}
      <${Hints} head=${head} /><${Refusal} text=${story.error} />
      ${at.query.session && !session && html`<p role="alert">There is no session “${at.query.session}” of this head.
        <a href=${beside(at, { session: "", open: "" })}>Show the newest</a></p>`}</div>
    <${Transcript} at=${at} story=${story} session=${session} />
    <${Visitor} head=${head} session=${session} enter=${enter} /><${Model} head=${head} enter=${enter} />
    <${Timeline} at=${at} story=${story} session=${session} />`;
}
