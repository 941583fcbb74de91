import assert from "node:assert/strict";
import { test } from "node:test";

import { Metadata, Server as GrpcServer, ServerCredentials, status } from "@grpc/grpc-js";

import { BenchClient, InvalidSpec, Refused, Unreachable } from "cbench-client";

import { encodeSpec } from "../dist/spec.js";
import { bytes, pb, until } from "./support/wire.js";

const nothing = (type) => type.decode(new Uint8Array());
const SPEC = { systems: [{ builtin: "identity" }], datasets: [{ name: "mini-qa" }] };

/** A small real daemon; `methods` answer with messages, or with a status by throwing it. */
async function daemon(t, methods) {
  const server = new GrpcServer();
  const codec = { requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes };
  const names = { Evaluate: true, WatchRun: true, GetRun: false, UploadExamples: false };
  const definition = Object.fromEntries(Object.entries(names).map(([name, responseStream]) => [
    name, { path: `/cbench.v1.Bench/${name}`, requestStream: name === "UploadExamples", responseStream, ...codec },
  ]));
  server.addService(definition, methods);
  const port = await new Promise((resolve) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (_, bound) => resolve(bound));
  });
  const client = new BenchClient(`127.0.0.1:${port}`, { timeoutMs: 5_000 });
  t.after(() => {
    client.close();
    server.forceShutdown();
  });
  return client;
}

const run = (fields = {}) => ({ ...nothing(pb.Run), runId: "r1", ...fields });
const event = (sequence, $case, value) => ({ sequence: BigInt(sequence), createTime: undefined, kind: { $case, value } });
const row = (sequence) => event(sequence, "row", { ...nothing(pb.EvalRow), index: BigInt(sequence) });
const finished = (sequence) => event(sequence, "finished", run({ state: pb.RunState.RUN_STATE_SUCCEEDED }));
const batch = (...events) => bytes(pb.WatchRunResponse.encode({ events }).finish());

async function collect(events) {
  const seen = [];
  for await (const each of events) seen.push(each);
  return seen;
}

test("a lost stream is taken up where it broke: each event once, in order", async (t) => {
  const asked = [];
  const lost = { code: status.UNAVAILABLE, details: "restarting" };
  const client = await daemon(t, {
    Evaluate: (stream) => {
      stream.write(batch(event(1, "accepted", run()), row(2), event(0, "progress", nothing(pb.Progress))));
      stream.emit("error", lost);
    },
    WatchRun: (stream) => {
      const request = pb.WatchRunRequest.decode(stream.request);
      asked.push([request.runId, Number(request.afterSequence)]);
      // The second stream repeats what the first has sent already, and breaks as well.
      if (asked.length === 1) {
        stream.write(batch(row(2), row(3)));
        stream.emit("error", lost);
      } else {
        stream.write(batch(row(4), finished(5)));
        stream.end();
      }
    },
  });
  const seen = await collect(client.evaluate(SPEC));
  assert.deepEqual(seen.map(({ kind, sequence }) => [kind, sequence]), [
    ["accepted", 1], ["row", 2], ["progress", 0], ["row", 3], ["row", 4], ["finished", 5],
  ]);
  assert.deepEqual(asked, [["r1", 2], ["r1", 3]]);
  assert.equal(seen.at(-1).run.state, "succeeded");
});

test("the same request id is sent when the first stream breaks before the run is named", async (t) => {
  const ids = [];
  const client = await daemon(t, {
    Evaluate: (stream) => {
      ids.push(pb.EvaluateRequest.decode(stream.request).requestId);
      if (ids.length === 1) {
        stream.emit("error", { code: status.UNAVAILABLE, details: "busy" });
      } else {
        stream.write(batch(event(1, "accepted", run()), finished(2)));
        stream.end();
      }
    },
  });
  await collect(client.evaluate(SPEC));
  assert.equal(ids.length, 2);
  assert.equal(ids[0], ids[1]);
});

test("reconnecting ends when the daemon stays away for longer than allowed", async (t) => {
  const client = await daemon(t, {
    WatchRun: (stream) => {
      const request = pb.WatchRunRequest.decode(stream.request);
      if (request.afterSequence === 0n) stream.write(batch(row(1)));
      stream.emit("error", { code: status.UNAVAILABLE, details: "gone" });
    },
  });
  await assert.rejects(collect(client.watch("r1", { reconnectForMs: 300 })), /is not available: .*gone/);
});

test("a refusal carries the daemon's reason, and is not tried again", async (t) => {
  const metadata = new Metadata();
  metadata.set("cbench-reason", "UNKNOWN_RUN");
  const client = await daemon(t, {
    GetRun: (_, reply) => reply({ code: status.NOT_FOUND, details: 'no run "r9"', metadata }),
  });
  await assert.rejects(client.get("r9"), (error) => {
    assert.ok(error instanceof Refused);
    assert.deepEqual([error.code, error.reason, error.message], ["NOT_FOUND", "UNKNOWN_RUN", 'no run "r9"']);
    return true;
  });
});

test("a token that does not do is a refusal, not a daemon that is away", async (t) => {
  const client = await daemon(t, {
    GetRun: (_, reply) => reply({ code: status.UNAUTHENTICATED, details: "a bearer token is needed" }),
  });
  await assert.rejects(client.get("r1"), (error) => {
    assert.ok(error instanceof Refused);
    assert.deepEqual([error.code, error.reason], ["UNAUTHENTICATED", "UNAUTHENTICATED"]);
    return /wants a token and none was given/.test(error.message);
  });
});

test("a daemon that is not there is reported in a sentence", async (t) => {
  const client = new BenchClient("127.0.0.1:1", { timeoutMs: 5_000 });
  t.after(() => client.close());
  await assert.rejects(client.get("r1"), (error) => error instanceof Unreachable && /nothing listens at 127\.0\.0\.1:1/.test(error.message));
  await assert.rejects(collect(client.evaluate(SPEC)), Unreachable);
});

test("a signal ends a request that hangs, and the following of a run, with its own reason", async (t) => {
  const asked = [];
  const client = await daemon(t, {
    GetRun: () => asked.push("get"),
    WatchRun: (stream) => stream.write(batch(row(1), row(2))),
    UploadExamples: () => asked.push("upload"),
  });
  const stop = new Error("no longer wanted");
  const getting = new AbortController();
  const got = client.get("r1", { signal: getting.signal });
  await until(() => asked.length === 1);
  getting.abort(stop);
  await assert.rejects(got, stop);

  const watching = new AbortController();
  const seen = [];
  await assert.rejects(async () => {
    for await (const { row: { index } } of client.watch("r1", { signal: watching.signal })) {
      seen.push(index);
      watching.abort(stop);
    }
  }, stop);
  assert.deepEqual(seen, [1]);

  const endless = async function* () { for (;;) yield { context: "x".repeat(100_000) }; };
  const uploading = new AbortController();
  const uploaded = client.upload(endless(), { signal: uploading.signal });
  await until(() => asked.length === 2);
  uploading.abort(stop);
  await assert.rejects(uploaded, stop);
  await assert.rejects(client.get("r1", { signal: AbortSignal.abort(stop) }), stop);
});

test("a run and its rows come with all that the contract says of them", async (t) => {
  const value = (text) => ({ kind: { $case: "stringValue", value: text } });
  const spec = encodeSpec({ ...SPEC, rowTimeoutMs: 1500, seed: 2n ** 62n, labels: { a: "b" }, kind: "memory" });
  const note = { evaluator: "judge", details: new Map([["why", value("so")]]), failure: undefined };
  const told = { ...nothing(pb.EvalRow), reused: true, evaluatorNotes: [note], queueTime: { seconds: 1n, nanos: 0 }, marks: ["ANSWER_CUT"] };
  const client = await daemon(t, {
    GetRun: (_, reply) => reply(null, bytes(pb.GetRunResponse.encode({ run: run({ spec, parentRunId: "r0", state: 99 }) }).finish())),
    WatchRun: (stream) => {
      stream.write(batch(event(1, "row", told), finished(2)));
      stream.end();
    },
  });
  const found = await client.get("r1");
  assert.deepEqual([found.parentRunId, found.state, found.labels], ["r0", "unspecified", { a: "b" }]);
  assert.deepEqual(encodeSpec(found.spec), spec);
  const [{ row: { evaluatorNotes, queueTimeMs, marks, reused, usage } }] = await collect(client.watch("r1"));
  assert.deepEqual([evaluatorNotes, queueTimeMs, marks, reused, usage], [[{ evaluator: "judge", details: { why: "so" } }], 1000, ["ANSWER_CUT"], true, undefined]);
});

test("examples are uploaded in pieces of about a megabyte, and one that cannot be sent ends it", async (t) => {
  const sizes = [];
  let count = 0;
  const client = await daemon(t, {
    UploadExamples: (stream, reply) => {
      stream.on("data", (data) => {
        sizes.push(data.length);
        count += pb.UploadExamplesRequest.decode(data).examples.length;
      });
      stream.on("end", () => reply(null, bytes(pb.UploadExamplesResponse.encode({ digest: "d", exampleCount: BigInt(count) }).finish())));
    },
  });
  const examples = Array.from({ length: 30 }, (_, id) => ({ id, context: "x".repeat(100_000) }));
  assert.deepEqual(await client.upload(examples), { digest: "d", count: 30 });
  assert.equal(sizes.length, 3);
  await assert.rejects(client.upload([{ when: new Date() }]), /"when" holds a Date/);
});

test("a spec is encoded field by field", () => {
  const message = encodeSpec({
    systems: [{ target: "h:1", options: { rate: 0.5 }, tls: { caPem: "pem" } }, { proxy: { baseUrl: "http://h" } }],
    datasets: [{ name: "d", maxExamples: 5, where: { lang: "de" } }],
    evaluators: [{ name: "e", attached: "a" }],
    rowTimeoutMs: 1500,
    labels: { a: "b" },
    kind: "memory",
    seed: 2n ** 62n,
    queryBudget: 800,
    questionTypes: ["temporal"],
  });
  const decoded = pb.RunSpec.decode(pb.RunSpec.encode(message).finish());
  assert.deepEqual(decoded.systems.map(({ location }) => location.$case), ["target", "proxy"]);
  assert.deepEqual(decoded.systems[0].options.get("rate").kind, { $case: "doubleValue", value: 0.5 });
  assert.deepEqual(decoded.rowTimeout, { seconds: 1n, nanos: 5e8 });
  assert.deepEqual([decoded.kind, decoded.seed, decoded.datasets[0].maxExamples], [2, 2n ** 62n, 5n]);
  assert.deepEqual([decoded.queryBudget, decoded.questionTypes], [800n, ["temporal"]]);
});

for (const [fields, words] of [
  [{ system: [] }, /there is no field "system"\. Known: systems/],
  [{ systems: [{ nam: "x" }] }, /there is no field "systems\[0\]\.nam"/],
  [{ systems: [{ target: "a", builtin: "b" }] }, /"systems\[0\]" gives both target and builtin/],
  [{ systems: "identity" }, /"systems" cannot be identity: it is an array/],
  [{ kind: "both" }, /it is one of process, memory/],
  [{ seed: 0.5 }, /"seed" cannot be 0.5: it is an integer/],
  [{ systems: [{ builtin: "b", options: { f: () => 1 } }] }, /options\.f" holds a function/],
]) {
  test(`the spec ${Object.keys(fields)[0]} ${words} is refused by name`, () => {
    assert.throws(() => encodeSpec(fields), (error) => error instanceof InvalidSpec && words.test(error.message));
  });
}
