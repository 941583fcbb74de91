import assert from "node:assert/strict";
import { test } from "node:test";

import { status } from "@grpc/grpc-js";

import { CannotServe, NotServable, RemoteFailure, Server } from "cbench-client";

import { bytes, encodeFields, failureIn, pb, served, until } from "./support/wire.js";

const echo = { name: "echo", version: "3", description: "Says it again.", process: (example) => example };
const named = (name, process) => ({ name, process });
const describe = async (wire) =>
  pb.SystemDescribeResponse.decode(await wire.raw("/cbench.v1.System/Describe", bytes([])));

test("Describe says what is served, with which library", async (t) => {
  const chat = { name: "chat", maxConcurrency: 3, process: echo.process, processConversation: () => [] };
  const { wire, server } = await served(t, [echo, chat]);
  const { systems, sdk } = await describe(wire);
  assert.equal(sdk, "cbench-node/0.1.0");
  assert.deepEqual(server.names, ["echo", "chat"]);
  assert.deepEqual(systems.map((info) => [info.name, info.version, info.description, info.maxConcurrency]), [
    ["echo", "3", "Says it again.", undefined],
    ["chat", "", "", 3],
  ]);
  assert.deepEqual(systems.map((info) => info.capabilities), [[1], [1, 2]]);
});

test("a function is a system named like it", async (t) => {
  const { wire } = await served(t, function shorten(example) {
    return example.with({ context: example.context.slice(0, 2) });
  });
  assert.equal((await describe(wire)).systems[0].name, "shorten");
  const { fields, carried } = await wire.process({ id: 1, context: "abc", question: "q" });
  assert.deepEqual(fields, { context: "ab" });
  assert.deepEqual(carried.sort(), ["id", "question"]);
});

test("text that did not change is named, lists are sent, and a plain object will do", async (t) => {
  const { wire } = await served(t, named("spread", (example) => ({ ...example, response: "r" })));
  const { fields, carried } = await wire.process({ context: "c", n: 1, list: [1] });
  assert.deepEqual(fields, { list: [1], response: "r" });
  assert.deepEqual(carried.sort(), ["context", "n"]);
});

test("options and the call id reach user code, and usage comes back", async (t) => {
  const process = (example, { options, callId, remainingMs }) => ({
    options,
    callId,
    hasTime: remainingMs > 0,
    api_usage: { prompt_tokens: 2n ** 60n, cost_usd: 0.5, compute_seconds: 1.5 },
  });
  const { wire } = await served(t, named("tell", process));
  const options = encodeFields([["rate", 0.5]]);
  const { fields, usage } = await wire.process({}, { callId: "c1", options }, { deadline: Date.now() + 9e3 });
  assert.deepEqual([fields.options, fields.callId, fields.hasTime], [{ rate: 0.5 }, "c1", true]);
  assert.deepEqual([usage.promptTokens, usage.costUsd, usage.computeTime], [2n ** 60n, 0.5, { seconds: 1n, nanos: 5e8 }]);
});

test("what is thrown becomes a failure with the user's stack, and the server lives", async (t) => {
  function breakHere() {
    throw new TypeError("no such thing");
  }
  const { wire } = await served(t, [named("breaks", async () => breakHere()), echo]);
  const error = await wire.process({}, { system: "breaks" }).catch((thrown) => thrown);
  const failure = failureIn(error);
  assert.equal(error.code, status.INTERNAL);
  assert.equal(failure.reason, "EXCEPTION");
  assert.match(failure.message, /TypeError: no such thing/);
  assert.match(failure.stackTrace, /breakHere/);
  assert.doesNotMatch(failure.stackTrace, /dist\/limits/);
  await wire.process({ a: 1 }, { system: "echo" });
});

test("anything can be thrown, and very long texts are cut", async (t) => {
  const throws = { text: "just text", nothing: undefined, trap: { get stack() { throw new Error("x"); } }, long: new Error("é".repeat(50_000)) };
  const { wire } = await served(t, named("breaks", ({ what }) => { throw throws[what]; }));
  for (const what of Object.keys(throws)) {
    const error = await wire.process({ what }).catch((thrown) => thrown);
    assert.equal(failureIn(error).reason, "EXCEPTION", what);
  }
});

test("a RemoteFailure says its own reason, delay and whether to try again", async (t) => {
  const failure = new RemoteFailure("busy", { reason: "RATE_LIMITED", retryable: true, retryDelayMs: 1500 });
  const { wire } = await served(t, named("busy", () => Promise.reject(failure)));
  const error = await wire.process({}).catch((thrown) => thrown);
  assert.equal(error.code, status.UNAVAILABLE);
  assert.deepEqual(error.metadata.get("cbench-reason"), ["RATE_LIMITED"]);
  assert.deepEqual(error.metadata.get("grpc-retry-pushback-ms"), ["1500"]);
  const told = failureIn(error);
  assert.deepEqual([told.origin, told.retryable, told.retryDelay], [1, true, { seconds: 1n, nanos: 5e8 }]);
});

for (const [what, value, reason, words] of [
  ["text", "text", "BAD_RETURN", /process\(\) returned string, not an example/],
  ["nothing", undefined, "BAD_RETURN", /returned undefined/],
  ["a list", [], "BAD_RETURN", /not an example/],
  ["a date in a field", { when: new Date() }, "UNENCODABLE_VALUE", /"when" holds a Date/],
]) {
  test(`a system that returns ${what} fails as ${reason}`, async (t) => {
    const { wire } = await served(t, named("odd", () => value));
    const told = failureIn(await wire.process({}).catch((thrown) => thrown));
    assert.equal(told.reason, reason);
    assert.match(told.message, words);
  });
}

test("an unknown name is answered with the names that are served", async (t) => {
  const { wire } = await served(t, [echo, { ...echo, name: "other" }]);
  const unknown = await wire.process({}, { system: "ecco" }).catch((thrown) => thrown);
  assert.equal(unknown.code, status.NOT_FOUND);
  assert.match(unknown.details, /no system "ecco".*echo, other/);
  const unnamed = await wire.process({}).catch((thrown) => thrown);
  assert.equal(unnamed.code, status.INVALID_ARGUMENT);
});

test("bytes that are not a message are refused, as is a value of no kind", async (t) => {
  const { wire } = await served(t, echo);
  const garbled = await wire.raw("/cbench.v1.System/Process", bytes([0xff, 0xff])).catch((thrown) => thrown);
  assert.equal(garbled.code, status.INVALID_ARGUMENT);
  const example = { id: undefined, dataset: undefined, fields: new Map([["x", { kind: undefined }]]) };
  const empty = await wire.call("Process", { example }).catch((thrown) => thrown);
  assert.equal(empty.code, status.INVALID_ARGUMENT);
  assert.match(empty.details, /"x" is a Value with no kind set/);
});

test("cancelling a call aborts its signal", async (t) => {
  let seen;
  const process = (_, { signal }) =>
    new Promise((resolve, reject) => {
      seen = signal;
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  const { wire } = await served(t, named("slow", process));
  const call = wire.process({});
  await until(() => seen !== undefined);
  call.cancel();
  await assert.rejects(call);
  await until(() => seen.aborted);
  assert.equal(seen.reason.reason, "CANCELLED");
});

test("a deadline aborts the signal and answers the call, though user code runs on", async (t) => {
  let seen;
  const { wire } = await served(t, named("stuck", (_, { signal }) => {
    seen = signal;
    return new Promise(() => {});
  }));
  const error = await wire.process({}, {}, { deadline: Date.now() + 100 }).catch((thrown) => thrown);
  assert.equal(error.code, status.DEADLINE_EXCEEDED);
  await until(() => seen.aborted);
});

test("a duplicate in flight is refused, and allowed once the first is answered", async (t) => {
  const waiting = [];
  const { wire } = await served(t, named("slow", () => new Promise((resolve) => waiting.push(() => resolve({})))));
  const first = wire.process({}, { callId: "same" });
  const second = await wire.process({}, { callId: "same" }).catch((thrown) => thrown);
  assert.equal(second.code, status.ALREADY_EXISTS);
  waiting.shift()();
  await first;
  const third = wire.process({}, { callId: "same" });
  await until(() => waiting.length === 1);
  waiting.shift()();
  await third;
});

test("no more calls run at once than stated, and beyond what may wait they are refused", async (t) => {
  let [running, most] = [0, 0];
  const waiting = [];
  const process = async () => {
    most = Math.max(most, (running += 1));
    await new Promise((resolve) => waiting.push(resolve));
    running -= 1;
    return {};
  };
  const { wire } = await served(t, { name: "two", maxConcurrency: 2, process });
  const calls = Array.from({ length: 11 }, () => wire.process({}).then(() => "ok", (error) => error.code));
  assert.equal(await Promise.race(calls), status.RESOURCE_EXHAUSTED);
  let done = false;
  const outcomes = Promise.all(calls).finally(() => (done = true));
  await until(() => { waiting.splice(0).forEach((resolve) => resolve()); return done; });
  assert.deepEqual((await outcomes).sort(), [status.RESOURCE_EXHAUSTED, ...Array(10).fill("ok")].sort());
  assert.equal(most, 2);
});

test("conversations are answered by turns or texts", async (t) => {
  const chat = {
    name: "chat",
    process: echo.process,
    processConversation: (turns, { example }) => turns.map(({ content, mood }, n) => (n ? content : { content: example.context, mood })),
  };
  const { wire } = await served(t, [chat, echo]);
  const turns = ["one", "two"].map((content) => ({ role: "user", content, speaker: "", time: "", session: "", fields: encodeFields([["mood", 1]]) }));
  const example = { id: undefined, dataset: undefined, fields: encodeFields([["context", "ctx"]]) };
  const { replies } = await wire.call("ProcessConversation", { system: "chat", turns, example });
  assert.deepEqual(replies.map(({ role, content }) => [role, content]), [["assistant", "ctx"], ["assistant", "two"]]);
  assert.deepEqual(replies[0].fields.get("mood").kind, { $case: "intValue", value: 1n });
  const error = await wire.call("ProcessConversation", { system: "echo", turns }).catch((thrown) => thrown);
  assert.equal(error.code, status.UNIMPLEMENTED);
});

test("evaluators score, explain, and refuse options they do not take", async (t) => {
  const same = {
    name: "same",
    scores: { same: "Whether.", far: "How far." },
    lowerIsBetter: ["far"],
    score: ({ answer }, { response }) => ({ scores: { same: Number(answer === response), far: null }, explanation: "why", details: { answer } }),
  };
  const { wire } = await served(t, same);
  const example = (name, value) => ({ id: undefined, dataset: undefined, fields: encodeFields([[name, value]]) });
  const pair = { original: example("answer", "a"), processed: example("response", "a") };
  const scored = await wire.call("Score", pair);
  assert.deepEqual([...scored.scores, scored.explanation, scored.details.get("answer").kind.value], [["same", 1], "why", "a"]);
  const error = await wire.call("Score", { ...pair, options: encodeFields([["strict", true]]) }).catch((thrown) => thrown);
  assert.equal(error.code, status.INVALID_ARGUMENT);
  assert.match(error.details, /takes no options, and got: strict/);
  assert.equal(failureIn(error).origin, 2);
});

test("a 50 MB context goes there and back", async (t) => {
  const { wire } = await served(t, named("twice", ({ context }) => ({ context: `${context}!` })));
  const { fields } = await wire.process({ context: "ü".repeat(25_000_000) });
  assert.equal(fields.context.length, 25_000_001);
});

for (const [what, offered, words] of [
  ["nothing", [], /nothing to serve/],
  ["a class", class Thing { process() {} }, /Thing is a class; pass an object: new Thing\(\)/],
  ["an object without methods", { name: "x" }, /neither process/],
  ["a nameless function", () => ({}), /has the name ""/],
  ["a name with a slash", { ...echo, name: "a/b" }, /"a\/b"/],
  ["two of one name", [echo, echo], /two systems are called "echo"/],
  ["a limit of zero", { ...echo, maxConcurrency: 0 }, /maxConcurrency is 0/],
  ["an evaluator in capitals", { name: "Same", score: () => ({}) }, /lowercase letters/],
]) {
  test(`${what} cannot be served, and the message says why`, () => {
    assert.throws(() => new Server(offered), (error) => error instanceof NotServable && words.test(error.message));
  });
}

test("a network address needs TLS and a token, and an address needs a port", () => {
  assert.throws(() => new Server(echo, { address: "0.0.0.0:0" }), (error) => error instanceof CannotServe && /reached from the network/.test(error.message));
  assert.throws(() => new Server(echo, { address: "127.0.0.1" }), /has no port/);
});

test("an address that is taken is refused in a sentence", async (t) => {
  const { server } = await served(t, echo);
  await assert.rejects(new Server(echo, { address: server.address }).start(), CannotServe);
});
