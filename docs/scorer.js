// How the search orders what it finds: pages whose title has the words asked for, pages of the manual, then references
// and proofs. The numbers are those of Sphinx.
var Scorer = {
  score: ([page, title, , , score]) => {
    const asked = new URLSearchParams(location.search).get("q").trim().toLowerCase();
    const reference = /^(src|[A-Z]|docs\/(api|commands|gallery|papers|bibliography))/.test(page);
    return score + (title.toLowerCase().includes(asked) ? 10 : 0) - (reference ? 10 : 0);
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
