import assert from "node:assert/strict";
import { test } from "node:test";

import { extract, keywordInContext } from "../examples/keyword-in-context.js";
import { served } from "./support/wire.js";

const filler = (count, word = "filler") => Array.from({ length: count }, (_, n) => `${word}${n}`).join(" ");
const context = `${filler(50)}. The lighthouse of Bremen was built in 1856. ${filler(50, "more")}`;
const words = (text) => text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;

test("the words around the question's keywords are kept, in order", () => {
  const short = extract(context, "When was the lighthouse in Bremen built?", 0.2, 5);
  assert.match(short, /The lighthouse of Bremen was built in 1856\. more0/);
  assert.doesNotMatch(short, /filler3\b/);
});

test("never more than the ratio is kept, and the middle of a window goes last", () => {
  for (const ratio of [0.02, 0.05, 0.1, 0.5, 1]) {
    const short = extract(context, "lighthouse", ratio, 1_000);
    assert.ok(words(short) <= words(context) * ratio, `${ratio}`);
    assert.match(short, /lighthouse/);
  }
});

test("windows that do not meet are joined by an ellipsis, and those that do are merged", () => {
  const far = `alpha ${filler(20)} beta ${filler(20)}`;
  assert.equal(extract(far, "alpha beta", 1, 1), "alpha filler0 … filler19 beta filler0");
  assert.equal(extract("one alpha two beta three", "alpha beta", 1, 1), "one alpha two beta three");
});

test("places with more keywords, and rarer ones, come first", () => {
  const text = `${"river ".repeat(30)} ${filler(30)} river delta ${filler(30)}`;
  assert.match(extract(text, "Which river has a delta?", 0.05, 2), /river delta/);
});

test("case, plurals and possessives do not matter, and scripts without capitals work", () => {
  assert.match(extract(`${filler(9)} the Keeper's lamps ${filler(9)}`, "keeper lamp", 0.15, 1), /Keeper's lamps/);
  assert.match(extract(`${filler(9)} маяк ${filler(9)}`, "Где маяк?", 0.1, 0), /маяк/);
});

test("without a keyword the beginning is kept, and an empty context stays empty", () => {
  assert.equal(extract("one two three four", "nothing here", 0.5), "one two");
  assert.equal(extract("", "anything", 0.5), "");
});

test("the same input gives the same output", () => {
  assert.equal(extract(context, "lighthouse Bremen", 0.3), extract(context, "lighthouse Bremen", 0.3));
});

test("it is served, and refuses a ratio that is none", async (t) => {
  const { wire } = await served(t, keywordInContext);
  const { fields, carried } = await wire.process({ context, question: "lighthouse" });
  assert.match(fields.context, /lighthouse/);
  assert.deepEqual(carried, ["question"]);
  const { encodeFields } = await import("./support/wire.js");
  const options = encodeFields([["ratio", 7]]);
  await assert.rejects(wire.process({ context }, { options }), /option "ratio" is 7; it must be at most 1/);
});
