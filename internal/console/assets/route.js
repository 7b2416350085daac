// What the address of the page says, and addresses that say something else.
import { changed } from "./store.js";

export const parts = ["conversation", "configuration", "deliveries", "tools", "requests", "faults"];
export const titles = { deliveries: "All deliveries", requests: "All requests", faults: "Faults",
  seed: "Seed and reset" };

// route returns what the address shows. The page is home, head, a key of titles, or "" for nothing.
export function route() {
  const [path, query] = location.hash.slice(1).split("?");
  const found = { page: "", head: "", part: parts[0], query: Object.fromEntries(new URLSearchParams(query)) };
  let names;
  try {
    names = path.split("/").filter(Boolean).map(decodeURIComponent);
  } catch {
    return found;
  }
  const [first, head, part = parts[0]] = names;
  if (!first) return { ...found, page: "home" };
  if (names.length === 1 && titles[first]) return { ...found, page: first };
  if (first !== "heads" || !head || names.length > 3 || !parts.includes(part)) return found;
  return { ...found, page: "head", head, part };
}

// address returns the address of a place, whose empty parameters are left out.
export function address({ page, head, part = parts[0], query = {} }) {
  const named = new URLSearchParams(Object.entries(query).filter(([, value]) => value));
  const path = head ? `heads/${encodeURIComponent(head)}/${part}` : page;
  return `#/${path}${named.size ? "?" + named : ""}`;
}

export const beside = (at, query) => address({ ...at, query: { ...at.query, ...query } });

export function go(to) {
  if (to === location.hash) return;
  history.pushState(null, "", to);
  changed();
}

addEventListener("popstate", changed);
