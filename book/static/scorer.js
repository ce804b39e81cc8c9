// How the search of the book ranks: the chapter that teaches a term before the glossary that defines it, then labs, and
// the list of references last.
var Scorer = {
  score: result => {
    const [docname, , , , score] = result;
    if (docname.endsWith("book/glossary")) return score / 2;
    if (docname.startsWith("labs/")) return score / 4;
    if (docname.endsWith("book/bibliography")) return score / 8;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
