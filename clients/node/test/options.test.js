import assert from "node:assert/strict";
import { test } from "node:test";

import { Metadata, Server as GrpcServer, ServerCredentials, status } from "@grpc/grpc-js";

import { BenchClient, float, NotServable, Refused, Server } from "cbench-client";

import * as comparison from "../dist/gen/cbench/v1/comparison.js";
import { bytes, encodeFields, pb, served } from "./support/wire.js";

const nothing = (type) => type.decode(new Uint8Array());
const OPTIONS = {
  ratio: { type: "number", default: 0.5, minimum: 0, maximum: 1, description: "The share to keep." },
  words: { type: "integer", default: 100, minimum: 1 },
  mode: { type: "text", default: "good", choices: ["fast", "good"] },
  loud: { type: "boolean", default: false },
  stop: { type: "list", default: ["the"] },
  limit: { type: "integer", nullable: true },
  anything: {},
  key: { type: "text", required: true },
};
const tell = (more = {}) => ({
  name: "tell",
  declaredOptions: OPTIONS,
  process: (_, { options, traceparent = null }) => ({ options, traceparent }),
  ...more,
});
const asked = (options) => ({ options: encodeFields(Object.entries(options)) });

test("options are announced with their types, ranges and defaults", async (t) => {
  const { wire } = await served(t, tell());
  const reply = await wire.raw("/cbench.v1.System/Describe", bytes([]));
  const { declaredOptions } = pb.SystemDescribeResponse.decode(reply).systems[0];
  const told = declaredOptions.options.map(({ name, type, required, nullable }) => [name, type, required, nullable]);
  assert.deepEqual(told, [
    ["ratio", 3, false, false], ["words", 2, false, false], ["mode", 4, false, false], ["loud", 1, false, false],
    ["stop", 5, false, false], ["limit", 2, false, true], ["anything", 0, false, false], ["key", 4, true, false],
  ]);
  const [ratio, words, mode] = declaredOptions.options;
  assert.deepEqual([ratio.minimum, ratio.maximum, ratio.description], [0, 1, "The share to keep."]);
  assert.deepEqual([ratio.defaultValue.kind, words.defaultValue.kind], [
    { $case: "doubleValue", value: 0.5 }, { $case: "intValue", value: 100n },
  ]);
  assert.deepEqual(mode.choices.map(({ kind }) => kind.value), ["fast", "good"]);
  assert.equal(declaredOptions.acceptsOthers, false);
});

test("a call has what the run sets in the place of the defaults", async (t) => {
  const { wire } = await served(t, tell());
  const defaults = { ratio: 0.5, words: 100, mode: "good", loud: false, stop: ["the"], key: "k" };
  assert.deepEqual((await wire.process({}, asked({ key: "k" }))).fields.options, defaults);
  const set = { key: "k", ratio: 1, words: float(3), mode: "fast", limit: null, anything: { x: 1 } };
  assert.deepEqual((await wire.process({}, asked(set))).fields.options, { ...defaults, ...set, words: 3 });
});

test("options that do not suit are refused by name", async (t) => {
  const { wire } = await served(t, tell({ process: () => assert.fail("it got here") }));
  for (const [options, message] of [
    [{ rato: 1 }, /takes ratio, words, .*, and got: rato$/],
    [{ ratio: "half" }, /option "ratio" is "half"; it must be a number/],
    [{ ratio: 1.1 }, /option "ratio" is 1.1; it must be at most 1/],
    [{ ratio: NaN }, /it must be at least 0/],
    [{ words: 2.5 }, /option "words" is 2.5; it must be an integer/],
    [{ words: 0 }, /at least 1/],
    [{ words: 2n ** 60n }, /an integer/],
    [{ mode: "slow" }, /one of "fast", "good"/],
    [{ loud: 1 }, /true or false/],
    [{ stop: "the" }, /a list/],
    [{ key: null }, /text/],
  ]) {
    await assert.rejects(wire.process({}, asked({ key: "k", ...options })), (error) => {
      assert.equal(error.code, status.INVALID_ARGUMENT);
      assert.match(error.details, message);
      return true;
    });
  }
  await assert.rejects(wire.process({}, asked({})), /system "tell" needs the option "key"/);
});

test("options of any other name may be taken", async (t) => {
  const { wire } = await served(t, tell({ declaredOptions: { k: { type: "integer", default: 3 } }, acceptsOtherOptions: true }));
  assert.deepEqual((await wire.process({}, asked({ other: "x" }))).fields.options, { k: 3, other: "x" });
});

test("what cannot be declared is not served", () => {
  for (const declaredOptions of [
    3, [], { a: 1 }, { "a=b": {} }, { a: { kind: "text" } }, { a: { type: "float" } },
    { a: { type: "number", default: "half" } }, { a: { type: "number", default: 2, maximum: 1 } },
  ]) {
    assert.throws(() => new Server(tell({ declaredOptions })), NotServable);
  }
});

test("memory systems and evaluators declare theirs; an evaluator that takes no call takes none", async (t) => {
  class Memory {
    static declaredOptions = { k: { type: "integer", default: 3 } };
    reset() {}
    ingest(turns, { options }) { return { storedBytes: options.k }; }
    query(question, { options }) { return String(options.k); }
  }
  const some = {
    name: "some", scores: { k: "The option.", less: "Less." }, lowerIsBetter: ["less"], declaredOptions: Memory.declaredOptions,
    score: (original, processed, { options }) => ({ k: options.k }),
  };
  const { wire } = await served(t, [Memory, some, { name: "none", score: () => ({ k: 1 }) }]);
  assert.equal((await wire.call("Query", { scope: "a", ...asked({ k: 5 }) })).response, "5");
  assert.equal((await wire.call("Ingest", { scope: "a" })).storedBytes, 3n);
  assert.equal((await wire.call("Score", { evaluator: "some", ...asked({ k: 5 }) })).scores.get("k"), 5);
  await assert.rejects(wire.call("Score", { evaluator: "none", ...asked({ k: 5 }) }), /"none" takes no options, and got: k/);
  const reply = await wire.raw("/cbench.v1.Evaluator/Describe", bytes([]));
  const { evaluators } = pb.EvaluatorDescribeResponse.decode(reply);
  assert.deepEqual(evaluators.map((info) => info.declaredOptions?.options.length), [1, 0]);
  assert.deepEqual(evaluators[0].scores.map(({ direction }) => direction), [1, 2]);
});

test("the trace context of a call reaches user code", async (t) => {
  const seen = [];
  const { wire } = await served(t, { name: "trace", process: (example, call) => (seen.push([call.traceparent, call.tracestate]), example) });
  wire.metadata.set("traceparent", "00-1-2-01");
  wire.metadata.set("tracestate", "a=1");
  await wire.process({});
  const stream = wire.client.makeBidiStreamRequest("/cbench.v1.System/ProcessStream", bytes, bytes, wire.metadata);
  // Those of a stream have their own, or none.
  const calls = [["00-3-4-01", "b=2"], ["", ""]].map(([traceparent, tracestate]) => (
    { request: nothing(pb.ProcessRequest), timeout: undefined, traceparent, tracestate }
  ));
  stream.write(bytes(pb.ProcessStreamRequest.encode({ calls, cancelCallIds: [] }).finish()));
  stream.end();
  for await (const answer of stream) assert.ok(answer);
  assert.deepEqual(seen, [["00-1-2-01", "a=1"], ["00-3-4-01", "b=2"], [undefined, undefined]]);
});

// As the daemon encodes them: google.rpc.Status with an ErrorInfo and a BadRequest.
const DETAILS =
  "CAMSGWtlZXAgbXVzdCBub3QgYmUgbmVnYXRpdmUaUgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxImChBJTlZBTElEX0FSR1VN" +
  "RU5UEgZjYmVuY2gaCgoFZmxhZ3MSAXgaUAopdHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkJhZFJlcXVlc3QSIwohCgRrZWVwEhlrZWVwIG11c3Qg" +
  "bm90IGJlIG5lZ2F0aXZl";

test("a client has what the command line has", async (t) => {
  const server = new GrpcServer();
  const codec = { requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes };
  const shapes = { Compare: [0, 0], Gate: [0, 0], Report: [0, 1], Export: [0, 1], Import: [1, 0], ExplainWait: [0, 0], PinRun: [0, 0], PruneRuns: [0, 0] };
  const definition = Object.fromEntries(Object.entries(shapes).map(([name, [sent, received]]) => [
    name, { path: `/cbench.v1.Bench/${name}`, requestStream: Boolean(sent), responseStream: Boolean(received), ...codec },
  ]));
  const answer = (type, fields) => bytes(type.encode({ ...nothing(type), ...fields }).finish());
  const run = (runId) => ({ ...nothing(pb.Run), runId });
  server.addService(definition, {
    Compare: ({ request }, reply) => {
      const { runId, effect } = pb.CompareRequest.decode(request);
      const pair = { ...nothing(comparison.PairedDifference), a: runId, p: effect, direction: 1 };
      pair.difference = { ...nothing(comparison.Estimate) };
      reply(null, answer(pb.CompareResponse, { comparison: { ...nothing(comparison.Comparison), pairs: [pair] } }));
    },
    Gate: ({ request }, reply) => {
      const [policy] = pb.GateRequest.decode(request).policies;
      const checks = [{ ...nothing(comparison.PolicyCheck), policy, verdict: 3 }];
      reply(null, answer(pb.GateResponse, { runId: "r", checks }));
    },
    Report: (stream) => {
      for (const content of ["<p>", "</p>"]) stream.write(answer(pb.ReportResponse, { content: bytes(content) }));
      stream.end();
    },
    Export: (stream) => { stream.emit("error", { code: status.NOT_FOUND, details: "no such format" }); },
    Import: (stream, reply) => {
      let sent = "";
      stream.on("data", (data) => { sent += pb.ImportRequest.decode(data).content; });
      stream.on("end", () => { reply(null, answer(pb.ImportResponse, { run: run(sent), alreadyStored: true })); });
    },
    PinRun: ({ request }, reply) => {
      const { runId, unpin } = pb.PinRunRequest.decode(request);
      reply(null, answer(pb.PinRunResponse, { runId: `${runId} ${unpin}` }));
    },
    PruneRuns: ({ request }, reply) => {
      const { keep, olderThan } = pb.PruneRunsRequest.decode(request);
      if (keep === undefined) {
        const why = `${olderThan.seconds}`;
        const ended = new Date(1_000);
        return reply(null, answer(pb.PruneRunsResponse, { runs: [{ ...nothing(pb.PrunedRun), runId: "old", why, endTime: ended }] }));
      }
      const metadata = new Metadata();
      metadata.set("grpc-status-details-bin", Buffer.from(DETAILS, "base64"));
      return reply({ code: status.INVALID_ARGUMENT, details: "keep must not be negative", metadata });
    },
    ExplainWait: ({ request }, reply) => {
      reply(null, answer(pb.ExplainWaitResponse, { run: run(pb.ExplainWaitRequest.decode(request).reason) }));
    },
  });
  const port = await new Promise((resolve) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
  });
  const client = new BenchClient(`127.0.0.1:${port}`);
  t.after(() => {
    client.close();
    server.forceShutdown();
  });
  const { pairs } = await client.compare("r", { effect: 0.25 });
  assert.deepEqual([pairs[0].a, pairs[0].p, pairs[0].direction], ["r", 0.25, "higher-is-better"]);
  const gated = await client.gate("r", ["f1 above 0.5"]);
  assert.deepEqual([gated.passed, gated.checks[0].policy, gated.checks[0].verdict], [false, "f1 above 0.5", "not-shown"]);
  let page = "";
  for await (const piece of client.report("r")) page += piece;
  assert.equal(page, "<p></p>");
  await assert.rejects(client.export("r", "x").next(), (error) => error instanceof Refused && error.reason === "NOT_FOUND");
  const stopped = AbortSignal.abort(new Error("stopped"));
  await assert.rejects(client.report("r", { signal: stopped }).next(), /stopped/);
  const { run: stored, alreadyStored } = await client.import([Buffer.from("ne"), Buffer.from("w")]);
  assert.deepEqual([stored.runId, alreadyStored], ["new", true]);
  assert.equal((await client.explainWait("r", "it fell")).runId, "it fell");
  assert.deepEqual([await client.pin("r"), await client.unpin("r")], ["r false", "r true"]);
  const { runs: [pruned] } = await client.prune({ olderThanMs: 5_000 });
  assert.deepEqual([pruned.runId, pruned.why, pruned.endTime], ["old", "5", new Date(1_000)]);
  await assert.rejects(client.prune({ keep: -1 }), (error) => {
    assert.deepEqual(error.violations, [{ field: "keep", description: "keep must not be negative" }]);
    return error instanceof Refused;
  });
});
