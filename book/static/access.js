// Buttons are called by what is read on them: a name that lacks the visible words cannot be spoken to a computer.
document.addEventListener("DOMContentLoaded", () => {
  // "Show code" and "Hide code" are on the fold; the browser says whether it is open.
  document.querySelectorAll("details.hide > summary[aria-label]").forEach((fold) => fold.removeAttribute("aria-label"));
  // The key is a hint beside the word, and the icons have no words.
  document.querySelectorAll(".search-button__kbd-shortcut, .search-button i, .search-button svg").forEach((hint) =>
    hint.setAttribute("aria-hidden", "true"),
  );
  document.querySelectorAll(".theme-switch").forEach((icon) => {
    icon.removeAttribute("title");
    icon.setAttribute("aria-hidden", "true");
  });
});
