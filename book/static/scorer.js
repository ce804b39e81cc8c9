// How the search of the book ranks: the chapter that teaches a term before the glossary that defines it, then labs, and
// the list of references last. The reference of the library answers to names.
var Scorer = {
  score: result => {
    const [docname, , , descr, score] = result;
    if (docname.endsWith("book/glossary")) return score / 2;
    if (docname.startsWith("labs/")) return score / 4;
    if (docname.endsWith("book/bibliography")) return score / 8;
    // A function, class or module is found by its name; its members and the text of its entry come after the chapters.
    const entry = /^\(Python (function|class|data|module)/.test(descr ?? "");
    if (docname.startsWith("book/reference/") && !entry) return score / 8;
    return score;
  },
  objNameMatch: 60,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
