// The webhooks of a head, the deliveries of their events, and the requests to operations.
import { html, useState } from "./standalone.module.js";
import { address, beside, go } from "./route.js";
import { remove, store, useJournal, webhooksOf } from "./store.js";
import { AddWebhook, Ask, Line, Refusal, TurnOn } from "./act.js";
import { Choice, Table, answered, nameOf, nextOf, outcome, refused, span, status, time } from "./words.js";

export const events = ["start_conversation", "end_conversation", "inactivity_warning", "timeout_conversation"];

// any returns the options of a filter, with a value that the address has.
export const any = (values, value) => [["", "any"], ...new Set(value ? [...values, value] : values)];

function Webhooks({ head }) {
  const [doomed, doom] = useState();
  const list = webhooksOf(head);
  return html`<section class="webhooks" aria-label="Webhooks of the head"><div class="line"><h2>Webhooks</h2>
      <${AddWebhook} head=${head} /></div>
    ${list.length === 0 && html`<p class="soft">A webhook is the URL of your program that events are sent to.</p>`}
    <ul>${list.map((r) => html`<li key=${r.id} class="line"><b>${r.id}</b> ${r.receiver}
      <span class="soft">${r.events.join(", ") || "no event"}</span>
      <button class="quiet" onClick=${() => doom(r)}>Delete</button>
      ${r.note && html`<p class="warn">${r.note}</p>`}</li>`)}</ul>
    ${doomed && html`<${Ask} title="Delete webhook ${doomed.id}?" name="Delete" onClose=${() => doom()}
      text="Events that wait for it are given up." act=${() => remove(`webhooks/${doomed.id}`)} />`}
  </section>`;
}

// Journal shows a page of a journal as a table. row returns the cells of an entry.
export function Journal({ at, name, list, row, mark, columns, empty, children }) {
  const filtered = Object.entries(at.query).some(([key, value]) => value && key !== "open");
  const older = () => go(beside(at, { before: String(list.rows.at(-1).id), open: "" }));
  return html`<div class="line filters">${children}
      ${at.query.before && html`<button onClick=${() => go(beside(at, { before: "" }))}>Newest</button>`}
      ${list.more && html`<button onClick=${older}>Older</button>`}</div>
    <${Refusal} text=${list.error} />
    ${list.rows.length > 0 && html`<div class="table" tabindex="0" role="group" aria-label="Table of ${name}">
      <${Table} kind=${name} columns=${columns}>${list.rows.map((r) => html`<tr key=${r.id}
        class=${at.query.open === mark + r.id ? "chosen" : ""}>${row(r, mark + r.id)}</tr>`)}<//></div>`}
    ${list.ready && !list.error && list.rows.length === 0 && html`<div class="empty">${filtered
      ? html`<p>There is none that matches.</p><a href=${address({ ...at, query: {} })}>Show all</a>` : empty}</div>`}`;
}

function Empty({ head }) {
  if (!head) return html`<p>No event has been delivered yet.</p><a href="#/">Choose a head, and talk to it</a>`;
  return html`<p>No event of this head has been delivered yet.</p>
    ${webhooksOf(head).length === 0 ? html`<p>Add a webhook first.</p>`
    : !head.enableEvents ? html`<p>Its delivery is off.</p><${TurnOn} head=${head} />`
    : html`<a href=${address({ head: head.id })}>Send a message as the visitor</a>`}`;
}

export function Deliveries({ at, head }) {
  const { event = "", outcome: ended = "", before } = at.query;
  const list = useJournal("deliveries", { headId: head?.id, event, outcome: ended, before });
  const choose = (name) => (value) => go(beside(at, { [name]: value, before: "", open: "" }));
  const row = (d, open) => {
    const owner = !head && store.state.heads.find((h) => h.id === d.headId);
    return html`<td>${time(d.at)}</td><td><a href=${beside(at, { open })} data-opens=${open}>${d.event}</a></td>
      <td class=${answered(d) ? "good" : "bad"} title=${outcome(d)}>${outcome(d)}</td>
      <td>${d.webhookId}${owner && `, ${nameOf(owner)}`}</td><td>${d.attempt || "none"}</td>
      <td>${d.attempt > 0 && span(d.took)}</td><td>${nextOf(d)}</td>`;
  };
  return html`${head && html`<${Webhooks} head=${head} />`}
    <${Journal} at=${at} name="deliveries" list=${list} row=${row} mark="d" empty=${html`<${Empty} head=${head} />`}
      columns=${["Time", "Event", "Outcome", "Webhook", "Attempt", "Duration", "Next attempt"]}>
      <${Choice} name="event" value=${event} options=${any(events, event)} choose=${choose("event")} />
      <${Choice} name="outcome" value=${ended} options=${any(["delivered", "failed"], ended)}
        choose=${choose("outcome")} /><//>`;
}

export function Requests({ at, head }) {
  const list = useJournal("requests", { headId: head?.id, before: at.query.before });
  const row = (r, open) => html`<td>${time(r.at)}</td>
    <td><a href=${beside(at, { open })} data-opens=${open}>${r.method} ${r.path}</a></td>
    <td class=${refused(r) ? "bad" : "good"}>${status(r)}</td><td>${span(r.took)}</td>`;
  const curl = `curl -sS -H "Authorization: Bearer $HEADS_TOKEN" ${location.origin}/head/`;
  const empty = html`<p>No operation has been called yet. Point your program at the emulator, with the variables that it
    has printed, or try:</p><${Line} text=${curl + (head?.id ?? "$HEADS_HEAD_ID")} />`;
  return html`<${Journal} at=${at} name="requests" list=${list} row=${row} mark="r" empty=${empty}
    columns=${["Time", "Request", "Status", "Duration"]} />`;
}
