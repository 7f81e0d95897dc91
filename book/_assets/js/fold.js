// Folds the sections of a study's page that are marked: how it was measured, and on what. A link into a folded
// section opens it. Without this script they are open.
(() => {
  "use strict";
  for (const mark of document.querySelectorAll(".lb-fold")) {
    const section = mark.closest("section");
    const heading = section && section.querySelector(":scope > h1, :scope > h2, :scope > h3");
    if (!heading) continue;
    const details = document.createElement("details");
    details.className = "labbook-part";
    const summary = document.createElement("summary");
    summary.textContent = `Show: ${heading.firstChild.textContent}`;
    details.append(summary);
    while (heading.nextSibling) details.append(heading.nextSibling);
    section.append(details);
  }

  function go() {
    const id = decodeURIComponent(location.hash.slice(1));
    const place = id && document.getElementById(id);
    if (!place) return;
    const own = place.querySelector(":scope > details.labbook-part");
    if (own) own.open = true;
    for (let one = place.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    if (own || place.closest("details")) place.scrollIntoView();
  }

  window.addEventListener("hashchange", go);
  go();
})();
