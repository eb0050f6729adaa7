// Ranks the results of the site's search: pages before decisions, headings that have the words of a question first.
// Sphinx loads this file after its searchtools.js, whose `Scorer` and `Search` it changes.
"use strict";

const HEADING = 40;
const TITLE = 5;
const OF_A_TIME = 2;
const FURTHER_BACK = { "decisions/": 60, "reference/operations/": 10, "reference/commands": 10, benchmarks: 10 };

var Scorer = {
  score: ([docname, , , , score]) => {
    const [, less] = Object.entries(FURTHER_BACK).find(([start]) => docname.startsWith(start)) ?? ["", 0];
    return score - less;
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

/** Returns a text with times of day as one word each, because Sphinx drops words of digits: 02:30 is 2h30. */
const withTimes = (text) => text.replace(/\b0?(\d{1,2}):(\d\d)\b/g, "$1h$2");

/** Returns how much a word of the question counts in a heading. Hardly any heading has a time, so a time says most. */
const weight = (term) => (/^\d+h\d+$/.test(term) ? OF_A_TIME : 1);
const weights = (terms) => terms.reduce((sum, term) => sum + weight(term), 0);

/** Returns the headings that have more than half of the words, scored by how many they have. */
const headings = (terms) => {
  const { alltitles, docnames, filenames, titles } = Search._index;
  const stem = (word) => new Stemmer().stemWord(word);
  const all = [...terms];
  return Object.entries(alltitles).flatMap(([title, places]) => {
    const words = new Set(splitQuery(withTimes(title.toLowerCase())).map(stem));
    const share = weights(all.filter((term) => words.has(term))) / weights(all);
    if (share <= 0.5) return [];
    const score = HEADING * share * share + 10 / words.size;
    return places.map(([file, id]) => [
      docnames[file],
      titles[file] === title ? title : `${titles[file]} > ${title}`,
      id === null ? "" : `#${id}`,
      null,
      Math.round(score + (id === null ? TITLE : 0)),
      filenames[file],
      "title",
    ]);
  });
};

/** Returns pages that have some of the words. A word counts the more, the fewer pages have it. */
const withSome = (terms, find) => {
  const found = new Map();
  for (const term of terms) {
    const results = find(new Set([term]), new Set());
    for (const result of results) {
      const [docname, title, anchor, descr, , file, kind] = result;
      const before = found.get(docname)?.[4] ?? 0;
      found.set(docname, [docname, title, anchor, descr, before + 10 / Math.sqrt(results.length), file, kind]);
    }
  }
  return [...found.values()].sort((a, b) => b[4] - a[4]).slice(0, 20);
};

const parsed = Search._parseQuery;
Search._parseQuery = (query) => parsed(withTimes(query));

const withAll = Search.performTermsSearch;
Search.performTermsSearch = (terms, excluded) => {
  if (!terms.size) return [];
  const pages = withAll(terms, excluded);
  return [...headings(terms), ...(pages.length ? pages : withSome(terms, withAll))];
};
