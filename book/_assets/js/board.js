// Filters of the board of claims. Without this script the board is there, unfiltered.
(() => {
  "use strict";
  const board = document.querySelector(".labbook-board");
  if (!board) return;
  const place = board.querySelector(".labbook-filters");
  const found = board.querySelector(".labbook-found");
  const studies = [...board.querySelectorAll("details.labbook-study")];
  const rows = [...board.querySelectorAll("tr[data-verdict]")];
  const words = {
    "replicated": "replicated", "not-replicated": "not replicated", "open": "open",
    "not-testable": "not testable here", "not-run": "not run", "not-judged-yet": "not judged yet"};
  const known = [...new Set(rows.map(row => row.dataset.verdict))];
  const order = [...Object.keys(words), ...known].filter((one, at, all) => all.indexOf(one) === at);

  function choice(name, label, options) {
    const field = document.createElement("label");
    field.textContent = label + " ";
    const select = document.createElement("select");
    select.name = name;
    for (const [value, text] of [["", "all"], ...options]) {
      select.add(new Option(text, value));
    }
    select.addEventListener("change", show);
    field.append(select);
    place.append(field);
    return select;
  }

  const study = choice("study", "Study", studies.map(one =>
    [one.dataset.study, one.querySelector("summary strong").textContent]));
  const verdict = choice("verdict", "Verdict", order.filter(one => known.includes(one))
    .map(one => [one, words[one] || one]));
  const owner = choice("owner", "Claims", [["paper", "the papers'"], ["ours", "ours"]]);
  const headline = choice("headline", "Headline", [["yes", "only"]]);
  const run = choice("run", "Result", [["here", "of the last run here"], ["published", "published"], ["none", "none yet"]]);
  const machine = choice("machine", "Machine", Object.entries(JSON.parse(board.dataset.machines)));
  const filters = [study, verdict, owner, headline, run, machine];
  const fold = document.createElement("button");
  fold.type = "button";
  fold.addEventListener("click", () => {
    const open = !studies.some(one => one.open);
    studies.forEach(one => { one.open = open; });
    name();
  });
  place.append(fold);
  place.hidden = false;

  function name() {
    fold.textContent = studies.some(one => one.open) ? "Fold all" : "Unfold all";
  }

  function fits(row) {
    return (!verdict.value || row.dataset.verdict === verdict.value) &&
      (!owner.value || row.dataset.owner === owner.value) &&
      (!headline.value || row.dataset.headline === headline.value) &&
      (!run.value || row.dataset.run === run.value) &&
      (!machine.value || row.dataset.machines.split(" ").includes(machine.value)) &&
      (!study.value || row.closest("details").dataset.study === study.value);
  }

  function show() {
    let shown = 0;
    for (const row of rows) {
      row.hidden = !fits(row);
      shown += !row.hidden;
    }
    const filtered = shown < rows.length;
    for (const one of studies) {
      const some = !!one.querySelector("tr[data-verdict]:not([hidden])");
      one.hidden = !some;
      if (filtered && some) one.open = true;
    }
    remember();
    found.textContent = filtered ? `${shown} of ${rows.length} claims` : `${rows.length} claims`;
    name();
  }

  // Filters are in the address, so that a link to a filtered board can be given away.
  function remember() {
    const given = new URLSearchParams(filters.filter(one => one.value).map(one => [one.name, one.value]));
    const address = `${location.pathname}${given.size ? `?${given}` : ""}${location.hash}`;
    try { history.replaceState(null, "", address); } catch (_) { /* a page from a disk may not, in some browsers */ }
  }

  function recall() {
    const given = new URLSearchParams(location.search);
    for (const one of filters) {
      const value = given.get(one.name) || "";
      if ([...one.options].some(option => option.value === value)) one.value = value;
    }
  }

  function go() {
    const id = decodeURIComponent(location.hash.slice(1));
    const row = id && document.getElementById(id);
    if (!row || !board.contains(row)) return;
    if (row.hidden) {
      for (const select of filters) select.value = "";
      show();
    }
    const details = row.closest("details");
    if (details) details.open = true;
    name();
    row.scrollIntoView();
  }

  studies.forEach(one => { one.open = false; one.addEventListener("toggle", name); });
  recall();
  show();
  window.addEventListener("hashchange", go);
  go();
})();
