// A bare gRPC client for tests: real sockets, the protocol's own messages.

import { once } from "node:events";
import { connect, createServer } from "node:net";

import { Client, credentials, Metadata } from "@grpc/grpc-js";

import { Server } from "cbench-client";

import * as bench from "../../dist/gen/cbench/v1/bench.js";
import * as evaluator from "../../dist/gen/cbench/v1/evaluator.js";
import * as memory from "../../dist/gen/cbench/v1/memory.js";
import * as system from "../../dist/gen/cbench/v1/system.js";
import { Failure } from "../../dist/gen/cbench/v1/failure.js";
import { encodeExample } from "../../dist/example.js";
import { decodeFields, encodeFields } from "../../dist/values.js";

export const pb = { ...bench, ...evaluator, ...memory, ...system, Failure };
export const bytes = (data) => Buffer.from(data);

const METHODS = {
  Process: ["cbench.v1.System", pb.ProcessRequest, pb.ProcessResponse],
  ProcessConversation: [
    "cbench.v1.System",
    pb.ProcessConversationRequest,
    pb.ProcessConversationResponse,
  ],
  Ingest: ["cbench.v1.MemorySystem", pb.IngestRequest, pb.IngestResponse],
  Query: ["cbench.v1.MemorySystem", pb.QueryRequest, pb.QueryResponse],
  Reset: ["cbench.v1.MemorySystem", pb.ResetRequest, pb.ResetResponse],
  Score: ["cbench.v1.Evaluator", pb.ScoreRequest, pb.ScoreResponse],
};

const nothing = (type) => type.decode(new Uint8Array());

/** Start a server for one test, and a client of it; both end with the test. */
export async function served(test, offered, options) {
  const server = await new Server(offered, options).start();
  const wire = new Wire(test, server.address);
  test.after(() => server.stop({ graceMs: 1_000 }));
  return { server, wire };
}

/** Wait until something holds, and fail after ten seconds. */
export async function until(holds) {
  const end = Date.now() + 10_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`never happened: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/**
 * An address for one test, at which nobody listens but who is told of it.
 *
 * A freed port is given to the next who asks, and tests run beside one another. A connection to
 * ourselves keeps this one: servers may listen at its near end, and nobody else is given it.
 */
export async function heldAddress(test) {
  const far = createServer().listen(0, "127.0.0.1");
  await once(far, "listening");
  const near = connect({ port: far.address().port, host: "127.0.0.1", localAddress: "127.0.0.1" });
  const [[accepted]] = await Promise.all([once(far, "connection"), once(near, "connect")]);
  test.after(() => {
    near.destroy();
    accepted.destroy();
    far.close();
  });
  return `127.0.0.1:${near.localPort}`;
}

/** Calls to one server. */
export class Wire {
  constructor(test, address, channel = credentials.createInsecure(), token) {
    this.client = new Client(address, channel, { "grpc.max_receive_message_length": -1 });
    this.metadata = new Metadata();
    if (token) this.metadata.set("authorization", `Bearer ${token}`);
    test.after(() => this.client.close());
  }

  /** Make a unary call with raw bytes; the promise has `cancel`. */
  raw(path, data, { deadline } = {}) {
    let call;
    const answer = new Promise((resolve, reject) => {
      const done = (error, response) => (error ? reject(error) : resolve(response));
      const options = deadline === undefined ? {} : { deadline };
      call = this.client.makeUnaryRequest(path, bytes, bytes, data, this.metadata, options, done);
    });
    return Object.assign(answer, { cancel: () => call.cancel() });
  }

  /** Call a method by name with some fields of its request. */
  call(name, fields, options) {
    const [service, requests, responses] = METHODS[name];
    const data = bytes(requests.encode({ ...nothing(requests), ...fields }).finish());
    const answer = this.raw(`/${service}/${name}`, data, options);
    return Object.assign(answer.then((response) => responses.decode(response)), { cancel: answer.cancel });
  }

  /** Have an example processed; gives the fields that were sent back. */
  process(example, fields = {}, options) {
    const answer = this.call("Process", { example: encodeExample(example), ...fields }, options);
    const read = answer.then((response) => ({
      fields: decodeFields(response.fields),
      carried: response.carriedFields,
      usage: response.usage,
    }));
    return Object.assign(read, { cancel: answer.cancel });
  }

  /** Open a stream of process calls. */
  stream() {
    return new Stream(this.client.makeBidiStreamRequest("/cbench.v1.System/ProcessStream", bytes, bytes, this.metadata));
  }
}

/** One ProcessStream, with the outcomes received so far. */
class Stream {
  outcomes = [];
  status = undefined;

  constructor(stream) {
    this.stream = stream;
    stream.on("data", (data) => this.outcomes.push(...pb.ProcessStreamResponse.decode(data).outcomes));
    stream.on("error", () => {});
    stream.on("status", (status) => (this.status = status));
  }

  send(calls, cancelCallIds = []) {
    const made = calls.map(({ callId, timeout, system: name = "", ...example }) => ({
      request: { ...nothing(pb.ProcessRequest), system: name, callId, example: encodeExample(example) },
      timeout,
    }));
    this.stream.write(bytes(pb.ProcessStreamRequest.encode({ calls: made, cancelCallIds }).finish()));
  }

  get ids() {
    return this.outcomes.map((outcome) => outcome.callId);
  }

  end() {
    this.stream.end();
  }

  cancel() {
    this.stream.cancel();
  }
}

/** The failure that travels with a status. */
export function failureIn(error) {
  return pb.Failure.decode(error.metadata.get("cbench-failure-bin")[0]);
}

export { encodeFields };
