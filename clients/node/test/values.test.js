import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { float, Unencodable } from "cbench-client";

import { Value } from "../dist/gen/cbench/v1/example.js";
import { decodeValue, encodeValue } from "../dist/values.js";
import { decodeMessage } from "../dist/messages.js";

const kindOf = (value) => encodeValue(value).kind.$case;
const roundTrip = (value) => decodeValue(decodeMessage(Value, Value.encode(encodeValue(value)).finish()));
const nested = (levels) => (levels === 1 ? [] : [nested(levels - 1)]);

const VALUES = [
  null, true, false, 0, -0, 1, -1, 0.1, NaN, Infinity, -Infinity, 5e-324, 1.7976931348623157e308,
  2 ** 53 - 1, -(2 ** 53) + 1, 2n ** 53n, -(2n ** 53n), 2n ** 63n - 1n, -(2n ** 63n), 2 ** 53, 1e300,
  float(1), float(0), float(-7), "", "é", "e\u0301", "\u0000", "\ufeffstart", "👩‍🚀", [], {}, [[], [null]],
  { a: { b: [1, float(1), "1", 1n << 60n] } }, Buffer.from([0, 255]), nested(30),
];

for (const value of VALUES) {
  test(`${inspect(value, { depth: 0 })} comes back as it went`, () => {
    assert.deepStrictEqual(roundTrip(value), value);
  });
}

test("whole numbers and bigints are integers on the wire, everything else is a double", () => {
  assert.deepEqual([1, -5, 2 ** 53 - 1, 1n, 2n ** 60n].map(kindOf), Array(5).fill("intValue"));
  assert.deepEqual([0.5, NaN, -0, 2 ** 53, Infinity, float(1)].map(kindOf), Array(6).fill("doubleValue"));
});

test("a double that is a whole number computes like one", () => {
  const value = roundTrip(float(3));
  assert.equal(value * 2, 6);
  assert.equal(`${value}`, "3");
  assert.equal(JSON.stringify({ value }), '{"value":3}');
});

test("a field called __proto__ is a field like any other", () => {
  const sent = JSON.parse('{"__proto__": 1, "constructor": 2}');
  const got = roundTrip(sent);
  assert.deepEqual(Object.keys(got).sort(), ["__proto__", "constructor"]);
  assert.equal(Object.getPrototypeOf(got), Object.prototype);
});

test("a Map crosses as an object and any Uint8Array as bytes", () => {
  assert.deepEqual(roundTrip(new Map([["a", 1]])), { a: 1 });
  assert.deepEqual(roundTrip(new Uint8Array([1, 2])), Buffer.from([1, 2]));
});

for (const [what, value, words] of [
  ["an integer beyond 64 bits", { n: 2n ** 63n }, /"value\.n".*64 bits/],
  ["undefined", { a: { b: undefined } }, /"value\.a\.b" holds undefined/],
  ["a hole in an array", [1, , 3], /"value\[1\]" holds undefined/], // eslint-disable-line no-sparse-arrays -- the hole is the case
  ["a function", { f: () => 1 }, /"value\.f" holds a function/],
  ["a date", [new Date(0)], /"value\[0\]" holds a Date/],
  ["a symbol", Symbol("s"), /"value" holds a symbol/],
  ["a lone surrogate", { t: "\ud800" }, /"value\.t".*lone surrogate/],
  ["a lone surrogate in a key", { "\ud800": 1 }, /lone surrogate/],
  ["a key that is not text", new Map([[1, 2]]), /the key 1/],
  ["31 levels", nested(31), /30 levels/],
]) {
  test(`${what} is refused by name`, () => {
    assert.throws(() => encodeValue(value), (error) => error instanceof Unencodable && words.test(error.message));
  });
}

test("a value without a kind, and a null that is false, are refused", () => {
  assert.throws(() => decodeValue({ kind: undefined }, "x"), /"x" is a Value with no kind set/);
  assert.throws(() => decodeValue({ kind: { $case: "nullValue", value: false } }, "x"), /null_value/);
});

test("text that is not UTF-8 and trailing rubbish are not messages", () => {
  const data = Buffer.from(Value.encode(encodeValue("ab")).finish());
  data[data.length - 1] = 0xff;
  assert.throws(() => decodeMessage(Value, data));
  assert.throws(() => decodeMessage(Value, Buffer.from([0, 1, 2])));
});
