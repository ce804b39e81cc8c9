// How the search of the book ranks: the chapter that teaches a term before the glossary that defines it, labs last.
var Scorer = {
  score: result => {
    const [docname, , , , score] = result;
    if (docname.endsWith("book/glossary")) return score / 2;
    if (docname.startsWith("labs/")) return score / 4;
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
