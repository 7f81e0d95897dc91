// On the search page: claims and sections that have all of the words, above the pages that sphinx finds.
(() => {
  "use strict";
  const results = document.getElementById("search-results");
  const query = new URLSearchParams(location.search).get("q") || "";
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!results || !words.length) return;
  const root = document.documentElement.dataset.content_root || "./";
  const MOST = 30;

  function fits(text) {
    const low = text.toLowerCase();
    return words.every(word => low.includes(word));
  }

  // entries: [address, text, remark]
  function list(heading, entries) {
    if (!entries.length) return;
    const section = document.createElement("section");
    section.className = "labbook-search";
    const title = document.createElement("h2");
    title.textContent = `${heading} (${entries.length > MOST ? `${MOST} of ` : ""}${entries.length})`;
    const items = document.createElement("ul");
    for (const [address, text, remark] of entries.slice(0, MOST)) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = root + address;
      link.textContent = text;
      item.append(link, ` ${remark}`);
      items.append(item);
    }
    section.append(title, items);
    results.before(section);
  }

  function claims() {
    list("Claims", (window.labbookClaims || [])
      .filter(([, , statement]) => fits(statement))
      .map(([study, id, statement, verdict, title]) =>
        [`book/board.html#claim-${study}-${id}`, statement, `${verdict} · ${title}`]));
  }

  function sections() {
    const index = typeof Search === "undefined" ? null : Search._index;
    if (!index || !index.alltitles) return;
    const found = [];
    for (const [title, places] of Object.entries(index.alltitles)) {
      if (!fits(title)) continue;
      for (const [page, anchor] of places) {
        if (anchor) found.push([`${index.docnames[page]}.html#${anchor}`, title, index.titles[page]]);
      }
    }
    list("Sections", found);
  }

  const script = document.createElement("script");
  script.src = `${root}_static/js/claims_index.js`;
  script.addEventListener("load", claims);
  document.head.append(script);
  if (document.readyState === "complete") sections();
  else window.addEventListener("load", sections);
})();
