// Reads the page again every 5 seconds while the box is checked and the tab is seen.
const box = document.querySelector("#refresh");
const live = document.querySelector("#live");

async function read() {
  if (!box.checked || document.hidden) return;
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("#live");
    if (!fresh || !box.checked) return;
    const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
    live.replaceChildren(...fresh.childNodes);
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  } catch {
    // The next try may succeed.
  }
}

if (box && live) setInterval(read, 5000);
