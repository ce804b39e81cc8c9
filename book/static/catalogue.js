// Tables marked "mlsys-catalogue" get a search field and headings that sort, through List.js.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("table.mlsys-catalogue").forEach((table, index) => {
    const box = table.parentElement;
    box.id ||= `mlsys-catalogue-${index}`;
    const heads = [...table.querySelectorAll("thead th")];
    const names = heads.map((_, column) => `column-${column}`);
    table.querySelectorAll("tbody tr").forEach((row) =>
      [...row.cells].forEach((cell, column) => cell.classList.add(names[column])),
    );
    table.tBodies[0].classList.add("list");
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.dataset.sort = names[column];
      button.append(...head.childNodes);
      head.append(button);
    });
    const search = document.createElement("input");
    search.type = "search";
    search.className = "search";
    search.placeholder = "Search the table";
    search.setAttribute("aria-label", "Search the table");
    box.prepend(search);
    const list = new List(box.id, {
      valueNames: names,
      // Numbers carry thousands separators; a dash, for unknown, comes last.
      sortFunction: (a, b, { valueName, order }) => {
        const [x, y] = [a, b].map((item) => item.values()[valueName].replaceAll(/<[^>]*>|,/g, "").trim());
        const [p, q] = [x, y].map((text) => (text === "—" ? Infinity * (order === "desc" ? -1 : 1) : Number(text)));
        return Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y, undefined, { numeric: true }) : p - q;
      },
    });
    list.on("sortComplete", () =>
      heads.forEach((head) => {
        const button = head.firstElementChild;
        const way = button.classList.contains("asc") ? "ascending" : button.classList.contains("desc") ? "descending" : "none";
        head.setAttribute("aria-sort", way);
      }),
    );
  });
});
