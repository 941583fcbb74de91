import assert from "node:assert/strict";
import { test } from "node:test";

import { Example } from "cbench-client";

import { decodeExample, encodeExample } from "../dist/example.js";

test("fields are properties, and with gives a changed copy", () => {
  const example = new Example({ context: "long", choices: ["a", "b"] });
  const changed = example.with({ context: "short", response: "a" });
  assert.equal(example.context, "long");
  assert.equal(changed.context, "short");
  assert.deepEqual(changed.get("choices"), ["a", "b"]);
  assert.deepEqual({ ...changed }, { context: "short", choices: ["a", "b"], response: "a" });
  assert.deepEqual(Object.keys(changed.without("choices", "context")), ["response"]);
  assert.equal(changed.get("nothing"), undefined);
});

test("an example cannot be changed in place", () => {
  const example = new Example({ context: "long" });
  assert.throws(() => {
    example.context = "short";
  }, TypeError);
});

test("a field that is named like a method is reached by get, and kept by with", () => {
  const example = new Example({ get: "mine", with: 1 }).with({ other: 2 });
  assert.equal(example.get("get"), "mine");
  assert.deepEqual([...example.entries()], [["get", "mine"], ["with", 1], ["other", 2]]);
});

for (const id of [1, "1", 0, "", -5, 2n ** 62n]) {
  test(`the id ${typeof id} ${id} keeps its type`, () => {
    assert.strictEqual(decodeExample(encodeExample({ id, dataset: "d", x: 1 })).id, id);
  });
}

test("an id that is neither text nor an integer is refused", () => {
  for (const id of [1.5, null, true, ["x"]]) {
    assert.throws(() => encodeExample({ id }), /an id is text or an integer/);
  }
});
