// The page: it reads the state, and follows the stream.
import { $, set } from "./dom.js";
import { get, state, readURL, coalesce } from "./api.js";
import * as heads from "./heads.js";
import * as session from "./session.js";
import * as timeline from "./timeline.js";
import * as deliveries from "./deliveries.js";
import * as requests from "./requests.js";
import * as faults from "./faults.js";

function render() {
  heads.render();
  session.render();
  deliveries.render();
  faults.render();
}

const readState = coalesce(async () => {
  Object.assign(state, await get("state"));
  render();
}, 100);

// readAll reads what the stream does not send again.
function readAll() {
  readState();
  session.load();
  timeline.load();
  deliveries.restart(true);
  requests.restart(true);
}

let source;
let position = ""; // where the last stream has stopped, if the browser gave it up

function follow() {
  source = new EventSource("/_emulator/stream" + (position && "?after=" + encodeURIComponent(position)));
  source.onopen = () => set($("#connection"), "live");
  source.onerror = () => {
    set($("#connection"), "reconnecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(follow, 500);
  };
  source.onmessage = (e) => {
    position = e.lastEventId;
    const batch = JSON.parse(e.data);
    if (batch.fresh) return readAll();
    if (batch.state) readState();
    if (batch.log) session.add(batch.log);
    if (batch.deliveries) {
      deliveries.add(batch.deliveries);
      timeline.add(batch.deliveries);
    }
    if (batch.requests) requests.add(batch.requests);
  };
}

addEventListener("chosen", render);
addEventListener("popstate", () => {
  readURL();
  dispatchEvent(new Event("chosen"));
});

readURL();
render();
timeline.render();
follow();
