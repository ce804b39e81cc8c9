// What is typed becomes what the index calls it: without regard to hyphens, plurals and American spelling.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return; // not on the page of the search
  const british = [[/iz(?=(e|ed|er|es|ing|ation|ations)$)/, "is"], [/or(?=s?$)/, "our"], [/er(?=s?$)/, "re"],
                   [/el(?=(ed|ing)$)/, "ell"], [/og(?=s?$)/, "ogue"]];
  const words = (text) => text.toLowerCase().normalize("NFKC").split(/[^\p{Letter}\p{Number}_.+/]+/u).filter(Boolean);
  const singular = (word) => (word.length > 3 ? word.replace(/(?<=[^s])s$/, "") : word);
  const key = (text) => words(text.replace(/['’]s?\b/g, "")).map(singular).join("");
  // British first: that is how the book spells, and the stem of the other may be that of another word.
  const spellings = (word) => [...british.filter(([us]) => us.test(word)).map(([us, uk]) => word.replace(us, uk)), word];

  let known; // entries of the index by their key, once it is loaded
  const entries = () =>
    (known ??= new Map(Object.keys(Search._index.indexentries).map((entry) => [key(entry), entry])));
  const isKnown = (word) => new Stemmer().stemWord(word) in Search._index.terms;

  const asIndexed = (query) => {
    const typed = words(query).map(spellings);
    // At most a few words of a query have two spellings.
    const ways = typed.reduce((all, each) => all.flatMap((way) => each.map((word) => [...way, word])), [[]]);
    const entry = [query, ...ways.map((way) => way.join(" "))].map((way) => entries().get(key(way))).find(Boolean);
    return entry ?? typed.map((each) => each.find(isKnown) ?? each.at(-1)).join(" ");
  };
  const parsed = Search._parseQuery;
  Search._parseQuery = (query) => parsed(asIndexed(query));
});
