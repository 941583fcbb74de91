import assert from "node:assert/strict";
import { test } from "node:test";

import { status } from "@grpc/grpc-js";

import { encodeFields, failureIn, pb, bytes, served, until } from "./support/wire.js";

const turn = (content, fields = {}) => ({
  role: "user", content, speaker: "", time: "", session: "", fields: encodeFields(Object.entries(fields)),
});

class Notes {
  name = "notes";
  turns = [];

  reset() {
    this.turns = [];
  }

  ingest(turns) {
    this.turns.push(...turns);
    return { usage: { prompt_tokens: turns.length }, storedBytes: this.turns.length };
  }

  query(question) {
    return `${question} ${this.turns.map(({ content }) => content).join(",")}`;
  }
}

const ask = async (wire, scope, question = "?") => (await wire.call("Query", { scope, question })).response;

test("a class gets an object for each scope, and Reset forgets one of them", async (t) => {
  const { wire } = await served(t, Notes);
  await wire.call("Ingest", { scope: "a", turns: [turn("one")], callId: "1" });
  await wire.call("Ingest", { scope: "b", turns: [turn("two")], callId: "1" });
  assert.deepEqual([await ask(wire, "a"), await ask(wire, "b")], ["? one", "? two"]);
  await wire.call("Reset", { scope: "a" });
  assert.deepEqual([await ask(wire, "a"), await ask(wire, "b")], ["? ", "? two"]);
  await wire.call("Reset", { scope: "never used" });
});

test("a repeated Ingest stores nothing and gets the first answer, until Reset", async (t) => {
  const { wire } = await served(t, Notes);
  const ingest = () => wire.call("Ingest", { scope: "a", turns: [turn("x")], callId: "1" });
  const first = await ingest();
  await wire.call("Ingest", { scope: "a", turns: [turn("y")], callId: "2" });
  assert.deepEqual(await ingest(), first);
  assert.deepEqual([first.storedBytes, first.usage.promptTokens], [1n, 1n]);
  assert.equal(await ask(wire, "a"), "? x,y");
  await wire.call("Reset", { scope: "a" });
  await ingest();
  assert.equal(await ask(wire, "a"), "? x");
});

test("an Ingest that failed is not remembered, and one without an id never is", async (t) => {
  let count = 0;
  const flaky = {
    name: "flaky",
    reset: (call) => call,
    ingest(turns, call) {
      count += 1;
      if (count === 1) throw new Error(`first in ${call.scope}`);
    },
    query: (question, call) => `${question} ${call.scope} ${count}`,
  };
  const { wire } = await served(t, flaky);
  const ingest = (callId) => wire.call("Ingest", { scope: "a", turns: [], callId });
  await assert.rejects(ingest("1"), /first in a/);
  await ingest("1");
  await ingest("1");
  await ingest("");
  await ingest("");
  assert.equal(await ask(wire, "b"), "? b 4");
});

test("an object with one state says so to a second scope", async (t) => {
  const { wire } = await served(t, new Notes());
  await wire.call("Ingest", { scope: "a", turns: [turn("x")], callId: "1" });
  const error = await wire.call("Query", { scope: "b" }).catch((thrown) => thrown);
  assert.equal(error.code, status.FAILED_PRECONDITION);
  assert.match(error.details, /scope "a" holds until it is reset/);
  await wire.call("Reset", { scope: "a" });
  assert.equal(await ask(wire, "b"), "? ");
});

test("ingests of a scope run one after the other, and a cancelled one never reaches user code", async (t) => {
  const started = [];
  const waiting = [];
  class Slow extends Notes {
    async ingest(turns) {
      started.push(turns[0].content);
      await new Promise((resolve) => waiting.push(resolve));
    }
  }
  const { wire } = await served(t, Slow);
  const ingest = (content) => wire.call("Ingest", { scope: "a", turns: [turn(content)], callId: content });
  const first = ingest("first");
  await until(() => started.length === 1);
  // Answered over the same connection, so the server has heard of what was sent before.
  const heard = () => wire.raw("/cbench.v1.MemorySystem/Describe", bytes([]));
  const second = ingest("second");
  await heard();
  second.cancel();
  await assert.rejects(second);
  const third = ingest("third");
  await heard();
  waiting.shift()();
  await first;
  await until(() => waiting.length === 1);
  waiting.shift()();
  await third;
  assert.deepEqual(started, ["first", "third"]);
});

test("query is told budget and time, and may answer with more than text", async (t) => {
  class Full extends Notes {
    query(question, { budget, askedAt, scope }) {
      return {
        context: "found",
        contextTokens: 3,
        storedBytes: 2n ** 60n,
        retrievalMs: 12.5,
        usage: { completion_tokens: 1 },
        metadata: { question, budget, askedAt, scope, last: this.turns.at(-1) },
      };
    }
  }
  const { wire } = await served(t, Full);
  await wire.call("Ingest", { scope: "a", turns: [turn("x", { mood: 1.5 })], callId: "" });
  const answer = await wire.call("Query", { scope: "a", question: "q", budget: 7n, askedAt: "today" });
  assert.deepEqual([answer.response, answer.context, answer.contextTokens], ["", "found", 3n]);
  assert.deepEqual(answer.retrievalTime, { seconds: 0n, nanos: 12_500_000 });
  assert.equal(answer.metadata.get("budget").kind.value, 7n);
  assert.equal(answer.metadata.get("last").kind.value.fields.get("mood").kind.value, 1.5);
});

test("an answer that is neither text nor a context fails as BAD_RETURN", async (t) => {
  class Odd extends Notes {
    query() {
      return 5;
    }
  }
  const { wire } = await served(t, Odd);
  const error = await wire.call("Query", { scope: "a" }).catch((thrown) => thrown);
  assert.equal(failureIn(error).reason, "BAD_RETURN");
});

test("a function that makes objects is a memory system, too", async (t) => {
  const { wire } = await served(t, [], { memorySystems: [() => Object.assign(new Notes(), { name: "made", version: "2" })] });
  const data = await wire.raw("/cbench.v1.MemorySystem/Describe", bytes([]));
  const [info] = pb.MemorySystemDescribeResponse.decode(data).systems;
  assert.deepEqual([info.name, info.version], ["made", "2"]);
});
