// Printed output that stands in columns is marked: it keeps its lines, where a sentence is wrapped. A name and what is
// said of it, such as the source of a fact, are no columns.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".cell_output pre").forEach((printed) => {
    const rows = printed.textContent.split("\n").filter((line) => /\S {2,}\S.*\S {2,}\S/.test(line));
    printed.classList.toggle("in-columns", rows.length > 1);
  });
});
