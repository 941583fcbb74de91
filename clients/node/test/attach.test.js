import assert from "node:assert/strict";
import { test } from "node:test";

import { Server as GrpcServer, ServerCredentials, status } from "@grpc/grpc-js";

import { attach, Attachment, NotServable, Refused } from "cbench-client";

import { AttachRequest, AttachResponse } from "../dist/gen/cbench/v1/gateway.js";
import { encodeExample } from "../dist/example.js";
import { bytes, heldAddress, pb, until } from "./support/wire.js";

const echo = { name: "echo", process: (example) => example.with({ response: "r" }) };
const nothing = (type) => type.decode(new Uint8Array());

/** A small real daemon that takes attachments; `answer` may end a stream with a status. */
class Gateway {
  sessions = [];

  async start(t, answer = () => undefined, address = "127.0.0.1:0") {
    this.server = new GrpcServer();
    const path = "/cbench.v1.Gateway/Attach";
    const codec = { requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes };
    const definition = { Attach: { path, requestStream: true, responseStream: true, ...codec } };
    this.server.addService(definition, { Attach: (stream) => this.#take(stream, answer) });
    const port = await new Promise((resolve, reject) => {
      this.server.bindAsync(address, ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
    });
    t.after(() => this.server.forceShutdown());
    this.address = `127.0.0.1:${port}`;
    return this;
  }

  #take(stream, answer) {
    const session = { stream, results: [], isDrained: false, isEnded: false };
    session.send = (parts) => stream.write(bytes(AttachResponse.encode({ ...nothing(AttachResponse), ...parts }).finish()));
    session.call = (callId, context, extra = {}) => {
      const request = { ...nothing(pb.ProcessRequest), example: encodeExample({ context }) };
      session.send({ calls: [{ callId, work: { $case: "process", value: request }, ...extra }] });
    };
    stream.on("data", (data) => {
      const message = AttachRequest.decode(data);
      if (message.hello) {
        session.hello = message.hello;
        const refusal = answer(this.sessions.push(session));
        if (refusal) stream.emit("error", refusal);
        else session.send({ welcome: { attachmentId: `a${this.sessions.length}` } });
      }
      session.results.push(...message.results);
      session.isDrained ||= message.drain !== undefined;
    });
    stream.on("end", () => {
      session.isEnded = true;
      stream.end();
    });
  }
}

test("it says hello with what it offers, and answers calls", async (t) => {
  const gateway = await new Gateway().start(t);
  const attachment = new Attachment(echo, { server: gateway.address, maxInFlight: 3 });
  t.after(() => attachment.stop());
  assert.equal(await attachment.attached, "a1");
  const [session] = gateway.sessions;
  assert.deepEqual([session.hello.sdk, session.hello.maxInFlight], ["cbench-node/0.1.0", 3]);
  assert.deepEqual(session.hello.systems.map(({ name }) => name), ["echo"]);
  session.call("c1", "text");
  await until(() => session.results.length === 1);
  const [{ callId, result }] = session.results;
  assert.deepEqual([callId, result.$case, result.value.carriedFields], ["c1", "process", ["context"]]);
});

test("work it does not know, and more than it announced, is refused", async (t) => {
  const waiting = [];
  const slow = { name: "slow", process: () => new Promise((resolve) => waiting.push(resolve)) };
  const gateway = await new Gateway().start(t);
  const attachment = new Attachment(slow, { server: gateway.address, maxInFlight: 1 });
  t.after(() => attachment.stop({ graceMs: 10 }));
  await attachment.attached;
  const [session] = gateway.sessions;
  session.call("unknown", "x", { work: undefined });
  session.call("one", "x");
  session.call("two", "x");
  await until(() => session.results.length === 2);
  const reasons = session.results.map(({ callId, result }) => [callId, result.value.reason, result.value.retryable]);
  assert.deepEqual(reasons, [["unknown", "UNIMPLEMENTED", false], ["two", "RESOURCE_EXHAUSTED", true]]);
});

test("a broken attachment aborts its calls and is renewed", async (t) => {
  let signal;
  const slow = { name: "slow", process: (_, call) => new Promise(() => (signal = call.signal)) };
  const gateway = await new Gateway().start(t, undefined, await heldAddress(t));
  const attachment = new Attachment(slow, { server: gateway.address });
  t.after(() => attachment.stop({ graceMs: 10 }));
  await attachment.attached;
  gateway.sessions[0].call("c", "x");
  await until(() => signal !== undefined);
  gateway.server.forceShutdown();
  await until(() => signal.aborted);
  const again = await new Gateway().start(t, undefined, gateway.address);
  await until(() => again.sessions.length === 1);
});

test("a daemon that drains gets what is held, and the process back afterwards", async (t) => {
  const waiting = [];
  const slow = { name: "slow", process: () => new Promise((resolve) => waiting.push(resolve)) };
  const gateway = await new Gateway().start(t);
  const attachment = new Attachment(slow, { server: gateway.address });
  t.after(() => attachment.stop({ graceMs: 10 }));
  await attachment.attached;
  const [session] = gateway.sessions;
  session.call("c", "x");
  await until(() => waiting.length === 1);
  session.send({ drain: { reason: "maintenance" } });
  waiting[0]({ response: "late" });
  await until(() => session.isEnded);
  assert.deepEqual(session.results.map(({ callId }) => callId), ["c"]);
  await until(() => gateway.sessions.length === 2);
});

test("stopping sends a drain, finishes what is held, and ends the stream", async (t) => {
  const waiting = [];
  const slow = { name: "slow", process: () => new Promise((resolve) => waiting.push(resolve)) };
  const gateway = await new Gateway().start(t);
  const attachment = new Attachment(slow, { server: gateway.address });
  await attachment.attached;
  const [session] = gateway.sessions;
  session.call("c", "x");
  await until(() => waiting.length === 1);
  const stopped = attachment.stop();
  await until(() => session.isDrained);
  session.call("late", "x");
  await until(() => session.results.length === 1);
  waiting[0]({ response: "done" });
  await stopped;
  assert.ok(session.isEnded);
  assert.deepEqual(session.results.map(({ callId, result }) => [callId, result.$case]), [["late", "failure"], ["c", "process"]]);
});

test("a name that another holds is refused at first, and tried again if it was ours", async (t) => {
  const taken = { code: status.ALREADY_EXISTS, details: "taken" };
  const never = await new Gateway().start(t, () => taken);
  await assert.rejects(attach(echo, { server: never.address }), (error) => error instanceof Refused && error.code === "ALREADY_EXISTS");
  const gateway = await new Gateway().start(t, (count) => (count === 2 ? taken : undefined));
  const attachment = new Attachment(echo, { server: gateway.address });
  t.after(() => attachment.stop());
  await attachment.attached;
  gateway.sessions[0].stream.emit("error", { code: status.UNAVAILABLE, details: "restarting" });
  await until(() => gateway.sessions.length === 3);
});

test("a refusal for good is the end, and says why", async (t) => {
  const gateway = await new Gateway().start(t, () => ({ code: status.UNAUTHENTICATED, details: "no token" }));
  const attachment = new Attachment(echo, { server: gateway.address });
  await assert.rejects(attachment.attached, /refused the attachment of echo: no token/);
  await assert.rejects(attachment.ended, Refused);
});

test("maxInFlight must be a whole number", () => {
  assert.throws(() => new Attachment(echo, { maxInFlight: 0 }), NotServable);
});
