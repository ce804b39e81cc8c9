// One switch for the code of a page: a lesson shows the cells that teach, and the rest where a reader asks for it.
(() => {
  const root = document.documentElement;
  const key = "mlsys-show-code";
  let shown = false;
  try {
    shown = localStorage.getItem(key) === "yes";
  } catch {
    // A browser that stores nothing forgets the choice with the page.
  }
  root.classList.toggle("mlsys-lesson", !shown);

  document.addEventListener("DOMContentLoaded", () => {
    const folds = [...document.querySelectorAll("div.cell > details.hide")];
    const bar = document.querySelector(".article-header-buttons");
    if (!folds.length || !bar) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "btn btn-sm mlsys-show-code";
    const set = (wanted) => {
      shown = wanted;
      root.classList.toggle("mlsys-lesson", !shown);
      button.setAttribute("aria-pressed", String(shown));
      button.textContent = "Show code";
      button.title = "Show every cell of this page, its claims and their checks";
      folds.forEach((fold) => (fold.open = shown));
    };
    button.addEventListener("click", () => {
      set(!shown);
      try {
        localStorage.setItem(key, shown ? "yes" : "no");
      } catch {
        // As above.
      }
    });
    bar.prepend(button);
    set(shown);
  });
})();
