// What is folded on the screen is unfolded on paper.
(() => {
  "use strict";
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach(one => { one.open = true; });
  });
  window.addEventListener("afterprint", () => folded.forEach(one => { one.open = false; }));
})();
