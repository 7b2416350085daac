// Reads the page again every 5 seconds while the box is checked.
const box = document.querySelector("#refresh");
const region = document.querySelector("#status");
let timer;

async function read() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("#status");
    if (fresh) region.replaceChildren(...fresh.children);
  } catch {
    // The next try may succeed.
  }
}

if (box && region) {
  box.addEventListener("change", () => {
    clearInterval(timer);
    if (box.checked) timer = setInterval(read, 5000);
  });
}
