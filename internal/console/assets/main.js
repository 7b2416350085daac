// The frame of the page.
import { html, render, useEffect, useRef, useState } from "./standalone.module.js";
import { address, route, titles } from "./route.js";
import { changed, follow, post, store, useChanges, useSession } from "./store.js";
import { nameOf } from "./words.js";
import { Do } from "./act.js";
import { Keys, useKeys } from "./keys.js";
import { Heads, HeadTop, Number, Parts } from "./heads.js";
import { Conversation, sessionOf } from "./conversation.js";
import { Configuration } from "./configuration.js";
import { Deliveries, Requests } from "./journals.js";
import { Faults, armedFor } from "./faults.js";
import { Panel } from "./panel.js";
import { Seed } from "./seed.js";
import { Tools } from "./tools.js";

const views = { conversation: Conversation, configuration: Configuration, deliveries: Deliveries, tools: Tools,
  requests: Requests, faults: Faults, seed: Seed };

const NoHead = () => html`<div class="empty"><h1>There is no head yet</h1>
  <p>A head is what your program talks to. Add one to begin, or import a seed.</p>
  <${Do} name="Add a head" class="main" act=${() => post("seed", { heads: [{ name: "Ada", operationMode: "oc" }] })} />
  <a href="#/seed">Import a seed</a></div>`;

// Main is what the address shows. On a wide page, home is the first head.
function Main({ at, head, story }) {
  const View = views[at.head ? at.part : at.page];
  const part = html`<div class="part ${at.head && at.part}" key=${at.head + at.part}>
    <${View} at=${at} head=${head} story=${story} /></div>`;
  if (titles[at.page]) return html`<h1 tabindex="-1">${titles[at.page]}</h1>${part}`;
  if (head) {
    return html`<${HeadTop} key=${head.id} head=${head} />
      <${Parts} at=${at} head=${head} faults=${armedFor(head)} />${part}`;
  }
  if (at.page === "home") return html`<${NoHead} />`;
  return html`<div class="empty"><h1 tabindex="-1">Not here</h1><p>There is ${at.head ? `no head “${at.head}”`
    : `nothing at ${location.hash}`}.</p><a href="#/">‹ Back to the heads</a></div>`;
}

// useFocus gives the focus a place when its element is gone with the address.
function useFocus(at) {
  const first = useRef(true);
  useEffect(() => {
    const now = document.activeElement;
    const lost = now === document.body || now.getClientRects().length === 0;
    const shown = (selector) => [...document.querySelectorAll(selector)].find((e) => e.getClientRects().length > 0);
    if (lost && !first.current) (shown("main h1") ?? shown("nav [aria-current]"))?.focus({ preventScroll: true });
    first.current = false;
  }, [at.page, at.head, at.part]);
}

const narrow = matchMedia("(max-width: 760px)"); // as in style.css
narrow.addEventListener("change", changed);

function App() {
  useChanges();
  const [keys, showKeys] = useState(false);
  const last = useRef("");
  const { state, connection } = store;
  const given = route();
  const listed = narrow.matches && given.page === "home" && state?.heads.length > 0; // alone
  const head = state?.heads.find((h, i) => (given.page === "home" ? i === 0 && !listed : h.id === given.head));
  const at = given.page === "home" && head ? { ...given, head: head.id } : given;
  if (head) last.current = head.id;
  const covered = narrow.matches && !!at.query.open; // by the panel
  const session = head && at.part === "conversation" ? sessionOf(head, at) : undefined;
  const story = useSession(session?.id);
  useKeys(head, () => showKeys(true));
  useFocus(given);
  const title = titles[at.page] ?? (head ? `${nameOf(head)}, ${at.part}` : "");
  useEffect(() => {
    document.title = title ? `${title} – Heads emulator` : "Heads emulator";
  }, [title]);
  const numbers = { faults: state && state.faults.requests.length + state.faults.deliveries.length };
  return html`<header class="top"><a class="brand" href="#/">Heads emulator</a>
      <span class="status ${connection}" role="status" aria-label="Connection">${connection}</span>
      <button class="quiet" onClick=${() => showKeys(true)}>Keys</button></header>
    <div class="page ${listed ? "list" : given.page} ${at.query.open ? "opened" : ""}">
      <div class="side" role=${listed ? "main" : null} inert=${covered}><h1>Heads</h1>
        ${state && html`<${Heads} at=${at} chosen=${listed ? last.current : at.head} />`}
        <nav class="others" aria-label="Everything">${Object.entries(titles).map(([page, name]) => html`
          <a href=${address({ page })} aria-current=${at.page === page ? "page" : null}>${name}<${Number}
            n=${numbers[page]} /></a>`)}</nav>
      </div>
      <main inert=${covered}><a class="back" href="#/">‹ Heads</a>
        ${state && !listed && html`<${Main} at=${at} head=${head} story=${story} />`}</main>
      ${state && at.query.open && html`<${Panel} at=${at} story=${story} />`}
    </div>
    ${keys && html`<${Keys} onClose=${() => showKeys(false)} />`}`;
}

render(html`<${App} />`, document.querySelector("#app"));
follow();
