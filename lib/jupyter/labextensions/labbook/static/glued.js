// A JupyterLab extension, loaded as it is: JupyterLab asks the container at the end for its one plugin.
//
// In a notebook's text, {glue:text}`name` stands for a number and a block {glue} for a figure or table that a
// cell below makes with glue(). The book puts them in when it is built. This does so in JupyterLab, whenever a
// text or an output of an open notebook has changed.
(() => {
  const ROLE = /\{glue:text\}$/;
  const BLOCK = "language-{glue}";
  const PREFIX = "application/papermill.record/";
  const PAUSE_MS = 200; // between two looks

  // {name: {mime type: data}} of what the cells of a notebook have glued. Those of cells that JupyterLab does not
  // trust have no HTML.
  function glued(cells) {
    const found = new Map();
    for (const { model } of cells.filter((cell) => cell.model.type === "code")) {
      for (let i = 0; i < model.outputs.length; i++) {
        const { metadata, data } = model.outputs.get(i);
        const name = metadata?.scrapbook?.name;
        if (!name) continue;
        // what is shown where it is made, too, has no prefix
        const own = Object.fromEntries(Object.entries(data).map(([kind, value]) => [kind.replace(PREFIX, ""), value]));
        if (!model.trusted) delete own["text/html"];
        found.set(name, own);
      }
    }
    return found;
  }

  // Put an element in the place of each role and block, once for each rendering of a text.
  function prepare(text) {
    for (const code of text.querySelectorAll("code")) {
      const before = code.previousSibling;
      const block = code.parentElement.tagName === "PRE" && code.className.includes(BLOCK);
      const role = before?.nodeType === Node.TEXT_NODE && ROLE.test(before.data);
      if (!block && !role) continue;
      const place = document.createElement(block ? "div" : "span");
      place.className = "labbook-glued";
      place.dataset.name = block ? nameOfBlock(code) : code.textContent;
      if (role) before.data = before.data.replace(ROLE, "");
      (block ? code.parentElement : code).replaceWith(place);
    }
  }

  function nameOfBlock(code) {
    return code.className.split(BLOCK)[1].trim().split(/\s+/)[0];
  }

  function fill(place, value) {
    const name = place.dataset.name;
    const html = place.tagName === "DIV" ? value?.["text/html"] : undefined;
    const plain = value?.["text/plain"]?.replace(/^(['"])(.*)\1$/s, "$2");
    const shown = html ?? plain ?? `(${name}: not measured yet)`;
    if (place.shown === shown) return;
    place.shown = shown;
    if (html === undefined) place.textContent = shown;
    else place.innerHTML = html;
  }

  function look(app) {
    for (const panel of app.shell.widgets("main")) {
      const cells = panel.content?.widgets;
      if (!panel.context?.path?.endsWith(".ipynb") || !Array.isArray(cells)) continue;
      const texts = cells.filter((cell) => cell.model?.type === "markdown" && cell.node.isConnected);
      texts.forEach((cell) => cell.node.querySelectorAll(".jp-RenderedMarkdown").forEach(prepare));
      const places = texts.flatMap((cell) => [...cell.node.querySelectorAll(".labbook-glued")]);
      if (!places.length) continue;
      const values = glued(cells.filter((cell) => cell.model));
      places.forEach((place) => fill(place, values.get(place.dataset.name)));
    }
  }

  const plugin = {
    id: "labbook:glued",
    description: "Numbers, figures and tables in the text of notebooks",
    autoStart: true,
    activate: (app) => {
      let waits = false;
      const later = () => {
        if (waits) return;
        waits = true;
        setTimeout(() => { waits = false; look(app); }, PAUSE_MS);
      };
      new MutationObserver(later).observe(document.body, { childList: true, subtree: true });
      later();
    },
  };

  (window._JUPYTERLAB ??= {}).labbook = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
