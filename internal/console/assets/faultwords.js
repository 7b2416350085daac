// Faults as sentences, and the sentences that arm one.
import { count } from "./words.js";

// effects lists what a fault does: a verb, and what follows what it acts on. Effects with one verb
// share it.
const effects = {
  deliveries: (f) => [f.status && ["fail", `with ${f.status}`], f.drop && ["lose", ""],
    f.duplicate && ["deliver", "twice"], f.reorder && ["swap", "with the event that follows"],
    f.delay && ["delay", `by ${f.delay}`], f.corruptSignature && ["sign", "wrongly"],
    f.encoding && ["sign", `in ${f.encoding}`], f.age && ["make", `${f.age} old`]],
  requests: (f) => [f.status && ["answer", `with ${f.status}${f.afterEffect ? " although it took effect" : ""}`],
    f.body && ["answer", "with another body"], f.retryAfter && ["answer", `with Retry-After ${f.retryAfter}`],
    f.latency && ["answer", `${f.latency} late`], f.cut && ["close the connection of", `${f.cut} the effect`],
    f.cutBody && ["cut", "in the middle of the answer"]],
};

export function sentence(kind, f) {
  const noun = kind === "requests" ? "request" : f.status ? "attempt" : "event";
  const which = [f.method, f.route, f.event && `of ${f.event}`, f.webhookId && `to webhook ${f.webhookId}`,
    f.share && `(${+(f.share * 100).toFixed(1)} % of them)`];
  const times = f.times === 1 ? noun : count(f.times, noun);
  const whom = [f.times ? `the next ${times}` : `every ${noun}`, ...which].filter(Boolean).join(" ");
  const by = Map.groupBy(effects[kind](f).filter(Boolean), ([verb]) => verb);
  const it = f.times === 1 || !f.times ? "it" : "them";
  const does = [...by].map(([verb, list], i) => (
    `${verb} ${i ? it : whom} ${list.map(([, after]) => after).join(" and ")}`.trim()));
  const text = does.join(", and ") || `do nothing to ${whom}`;
  return text[0].toUpperCase() + text.slice(1) + ".";
}

// A preset is a sentence with its fields in braces, what they begin with, and other keys.
export const presets = {
  deliveries: [
    ["Fail the next {times attempt} with {status}", { times: 3, status: 503 }],
    ["Lose the next {times event}", { times: 3 }, { drop: true }],
    ["Deliver the next {times event} twice", { times: 1 }, { duplicate: true }],
    ["Swap the next {times event} with the event that follows", { times: 1 }, { reorder: true }],
    ["Delay the next {times event} by {delay}", { times: 1, delay: "5s" }],
    ["Sign the next {times event} wrongly", { times: 3 }, { corruptSignature: true }],
    ["Make the next {times event} {age} old", { times: 1, age: "48h" }],
  ],
  requests: [
    ["Answer 503 to the next {times request}", { times: 3 }, { status: 503 }],
    ["Answer 429 with Retry-After {retryAfter} to the next {times request}", { times: 3, retryAfter: "2s" },
      { status: 429 }],
    ["Answer {latency} late to the next {times request}", { times: 3, latency: "5s" }],
    ["Close the connection before the effect of the next {times request}", { times: 1 }, { cut: "before" }],
    ["Close the connection after the effect of the next {times request}", { times: 1 }, { cut: "after" }],
    ["Answer 500 although it took effect to the next {times request}", { times: 1 },
      { status: 500, afterEffect: true }],
  ],
};

// keys are those of the control API, with an example of each.
export const keys = {
  deliveries: { webhookId: 1, event: "end_conversation", times: 1, drop: true, duplicate: true, reorder: true,
    delay: "2s", corruptSignature: true, encoding: "base64", age: "48h", status: 503 },
  requests: { method: "GET", route: "/head/{id}", times: 1, status: 503, body: "{}", retryAfter: "2s", latency: "50ms",
    cut: "before", cutBody: true, afterEffect: true, share: 0.2 },
};
