import assert from "node:assert/strict";
import { test } from "node:test";

import { status } from "@grpc/grpc-js";

import { bytes, served, until } from "./support/wire.js";

/** A system whose calls are answered when the test says so, with what it saw. */
function gated(maxConcurrency) {
  const seen = new Map();
  const process = (example, { signal }) =>
    new Promise((resolve, reject) => {
      seen.set(example.key, { signal, release: () => resolve({ response: example.key }) });
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  return { system: { name: "gated", maxConcurrency, process }, seen };
}

test("outcomes come as they are ready, in any order, and half-close ends the stream", async (t) => {
  const { system, seen } = gated(8);
  const { wire } = await served(t, system);
  const stream = wire.stream();
  stream.send([{ callId: "a", key: "a" }, { callId: "b", key: "b" }]);
  await until(() => seen.size === 2);
  seen.get("b").release();
  await until(() => stream.ids.length === 1);
  stream.end();
  seen.get("a").release();
  await until(() => stream.status !== undefined);
  assert.deepEqual(stream.ids, ["b", "a"]);
  assert.equal(stream.status.code, status.OK);
});

test("a cancelled call is aborted and gets no outcome, and an unknown id is ignored", async (t) => {
  const { system, seen } = gated(8);
  const { wire } = await served(t, system);
  const stream = wire.stream();
  stream.send([{ callId: "a", key: "a" }, { callId: "b", key: "b" }]);
  await until(() => seen.size === 2);
  stream.send([], ["a", "never heard of"]);
  await until(() => seen.get("a").signal.aborted);
  seen.get("b").release();
  stream.end();
  await until(() => stream.status !== undefined);
  assert.deepEqual(stream.ids, ["b"]);
});

test("a call's own timeout is its failure, and the stream goes on", async (t) => {
  const { system, seen } = gated(8);
  const { wire } = await served(t, system);
  const stream = wire.stream();
  stream.send([{ callId: "a", key: "a", timeout: { seconds: 0n, nanos: 50_000_000 } }]);
  await until(() => stream.ids.length === 1);
  assert.equal(stream.outcomes[0].result.value.reason, "DEADLINE_EXCEEDED");
  await until(() => seen.get("a").signal.aborted);
  stream.send([{ callId: "b", key: "b" }]);
  await until(() => seen.has("b"));
  seen.get("b").release();
  await until(() => stream.ids.length === 2);
  stream.end();
});

test("a timeout of a hundred years is not one of none", async (t) => {
  const { system, seen } = gated(8);
  const { wire } = await served(t, system);
  const stream = wire.stream();
  stream.send([{ callId: "a", key: "a", timeout: { seconds: 3_153_600_000n, nanos: 0 } }]);
  await until(() => seen.has("a"));
  seen.get("a").release();
  await until(() => stream.ids.length === 1);
  assert.equal(stream.outcomes[0].result.$case, "response");
  stream.end();
});

test("a stream that breaks aborts the calls it brought", async (t) => {
  const { system, seen } = gated(8);
  const { wire } = await served(t, system);
  const stream = wire.stream();
  stream.send([{ callId: "a", key: "a" }]);
  await until(() => seen.has("a"));
  stream.cancel();
  await until(() => seen.get("a").signal.aborted);
});

test("a stream may bring more than fits: reading waits, and all are answered", async (t) => {
  const process = async (example) => {
    await new Promise((resolve) => setTimeout(resolve, 1));
    return { response: example.n };
  };
  const { wire } = await served(t, { name: "small", maxConcurrency: 2, process });
  const stream = wire.stream();
  const calls = Array.from({ length: 200 }, (_, n) => ({ callId: `c${n}`, n }));
  stream.send(calls.slice(0, 150));
  stream.send(calls.slice(150));
  stream.end();
  await until(() => stream.status !== undefined);
  assert.equal(stream.status.code, status.OK);
  assert.deepEqual(stream.ids.sort(), calls.map(({ callId }) => callId).sort());
  assert.ok(stream.outcomes.every(({ result }) => result.$case === "response"));
});

test("a message that cannot be decoded ends its stream, and no other", async (t) => {
  const { wire } = await served(t, { name: "echo", process: (example) => example });
  const [bad, good] = [wire.stream(), wire.stream()];
  bad.stream.write(bytes([0xff, 0xff]));
  await until(() => bad.status !== undefined);
  assert.equal(bad.status.code, status.INVALID_ARGUMENT);
  good.send([{ callId: "a" }]);
  good.end();
  await until(() => good.status !== undefined);
  assert.deepEqual(good.ids, ["a"]);
});

test("a large result does not hold up the others, and messages stay near 1 MB", async (t) => {
  const { wire } = await served(t, { name: "large", process: ({ size }) => ({ context: "x".repeat(size) }) });
  const stream = wire.stream();
  let largest = 0;
  stream.stream.on("data", (data) => (largest = Math.max(largest, data.length)));
  stream.send(Array.from({ length: 50 }, (_, n) => ({ callId: `c${n}`, size: 100_000 })));
  stream.end();
  await until(() => stream.status !== undefined);
  assert.equal(stream.ids.length, 50);
  assert.ok(largest <= 1_000_100, `a message had ${largest} bytes`);
});

test("draining answers what is held, refuses what is new, and ends streams", async (t) => {
  const { system, seen } = gated(8);
  const { wire, server } = await served(t, system);
  const stream = wire.stream();
  stream.send([{ callId: "a", key: "a" }]);
  await until(() => seen.has("a"));
  const stopped = server.stop();
  const late = await wire.process({}).catch((error) => error);
  assert.equal(late.code, status.UNAVAILABLE);
  seen.get("a").release();
  await until(() => stream.status !== undefined);
  assert.deepEqual(stream.ids, ["a"]);
  await stopped;
});
