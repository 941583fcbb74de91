// A keyword-in-context extractor: keep windows of words around the question's keywords.
//
// Start it with: node keyword-in-context.js 127.0.0.1:50061
import { fileURLToPath } from "node:url";

import { serve } from "cbench-client";

const WORD = /[\p{L}\p{N}]+(?:['’][\p{L}\p{N}]+)*/gu;
const GAP = " … ";
const STOP_WORDS = new Set(
  ("a an and are as at be been by did do does for from had has have how in is it its many much of on or " +
    "that the their there they this to was were what when where which who whom whose why will with")
    .split(" "),
);

/** Bring a word into the form in which it is compared: no case, no possessive, no plural. */
function normalise(word) {
  const plain = word.normalize("NFKC").toLowerCase().replace(/['’]s$/u, "");
  return plain.length > 3 ? plain.replace(/(?<!s)s$/u, "") : plain;
}

/** Weigh each keyword of the question that the context has: the rarer, the more. */
function weigh(words, question) {
  const counts = new Map();
  for (const { key } of words) counts.set(key, (counts.get(key) ?? 0) + 1);
  const asked = [...question.matchAll(WORD)].map(([word]) => word.toLowerCase());
  const keys = asked.filter((word) => !STOP_WORDS.has(word)).map(normalise);
  const known = keys.filter((key) => counts.has(key));
  return new Map(known.map((key) => [key, Math.log(1 + words.length / counts.get(key))]));
}

/** Rank the places where a keyword stands by the keywords that stand around them. */
function rank(words, weights, radius) {
  const places = words.flatMap(({ key }, place) => (weights.has(key) ? [place] : []));
  const worth = (place) => {
    const near = words.slice(Math.max(0, place - radius), place + radius + 1);
    const keys = new Set(near.map(({ key }) => key).filter((key) => weights.has(key)));
    return [...keys].reduce((sum, key) => sum + weights.get(key), 0);
  };
  return places
    .map((place) => ({ place, worth: worth(place) }))
    .sort((one, other) => other.worth - one.worth || one.place - other.place)
    .map(({ place }) => place);
}

/**
 * Shorten a context to at most `ratio` of its words: windows of `radius` words
 * to either side of the question's keywords, in order, merged where they meet.
 *
 * The same input always gives the same output. Without a keyword in the
 * context its beginning is kept.
 */
export function extract(context, question, ratio = 0.3, radius = 20) {
  const words = [...context.matchAll(WORD)].map((match) => ({
    key: normalise(match[0]),
    start: match.index,
    end: match.index + match[0].length,
  }));
  const budget = Math.floor(words.length * ratio);
  const ranked = rank(words, weigh(words, question), radius);
  const kept = new Set();
  for (const place of ranked.length > 0 ? ranked : [0]) {
    // Inside out, so that a window which does not fit keeps its middle.
    for (let distance = 0; distance <= (ranked.length > 0 ? radius : words.length); distance += 1) {
      for (const near of [place - distance, place + distance]) {
        if (kept.size < budget && near >= 0 && near < words.length) kept.add(near);
      }
    }
  }
  return join(context, words, [...kept].sort((one, other) => one - other));
}

/** Cut the kept words out of the text, with the text between neighbours. */
function join(context, words, kept) {
  const pieces = [];
  for (const place of kept) {
    const last = pieces.at(-1);
    if (last !== undefined && last.place === place - 1) Object.assign(last, { place, end: words[place].end });
    else pieces.push({ place, start: words[place].start, end: words[place].end });
  }
  return pieces.map(({ start, end }) => context.slice(start, end)).join(GAP);
}

const declaredOptions = {
  ratio: { type: "number", default: 0.3, minimum: 0.001, maximum: 1, description: "The share of the words to keep." },
  radius: { type: "integer", default: 20, minimum: 1, maximum: 10_000, description: "Words to either side of a keyword." },
};

export const keywordInContext = {
  name: "keyword-in-context",
  version: "1",
  description: "Keeps windows of words around the question's keywords.",
  declaredOptions,
  process(example, { options }) {
    const { context, question = "" } = example;
    if (typeof context !== "string") return example;
    return example.with({ context: extract(context, String(question), options.ratio, options.radius) });
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await serve(keywordInContext, { address: process.argv[2] });
}
