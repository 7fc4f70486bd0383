const pause = 2000;
async function refresh() {
  try {
    const answer = await fetch(location.href, { cache: "no-store" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) document.querySelector("main").replaceWith(page.querySelector("main"));
    document.title = page.title;
  } catch {
    document.querySelector(".pill").className = "pill bad";
    document.querySelector(".pill").textContent = "no answer";
  }
  setTimeout(refresh, pause);
}
setTimeout(refresh, pause);
