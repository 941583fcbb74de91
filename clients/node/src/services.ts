/**
 * gRPC methods of a served process: decode, hand to the host, encode.
 *
 * Messages arrive as bytes and are decoded here, so that one which is not what
 * it should be gets a status of ours.
 */

import type {
  MethodDefinition,
  sendUnaryData,
  Server,
  ServerDuplexStream,
  ServerUnaryCall,
} from "@grpc/grpc-js";

import { CurrentCall, type Kind } from "./calls.js";
import { asBytes } from "./channel.js";
import { RemoteFailure } from "./errors.js";
import {
  EvaluatorDescribeResponse,
  ScoreOutcome,
  ScoreRequest,
  ScoreResponse,
  ScoreStreamRequest,
} from "./gen/cbench/v1/evaluator.js";
import {
  IngestRequest,
  IngestResponse,
  MemorySystemDescribeResponse,
  QueryRequest,
  QueryResponse,
  ResetRequest,
  ResetResponse,
} from "./gen/cbench/v1/memory.js";
import {
  ProcessConversationRequest,
  ProcessConversationResponse,
  ProcessOutcome,
  ProcessRequest,
  ProcessResponse,
  ProcessStreamRequest,
  SystemDescribeResponse,
} from "./gen/cbench/v1/system.js";
import { shuttingDown, type Host } from "./host.js";
import { Lane, tooLarge, type Asked, type EncodeOutcome } from "./lane.js";
import { decodeMessage, emptyMessage, encodeFailure } from "./messages.js";
import { messageOf } from "./about.js";
import { consume } from "./stream.js";
import { statusOf } from "./status.js";

interface Codec<T> {
  decode(input: never): T;
  encode(message: T): { finish(): Uint8Array };
}

type Unary = (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>) => void;
type Bidi = (stream: ServerDuplexStream<Buffer, Buffer>) => void;

/** A batch of calls, as a stream brings it. */
interface Batch {
  readonly calls: Asked[];
  readonly cancelCallIds: string[];
}

/** Every method of the services a host has something for. */
export class Services {
  readonly names: string[] = [];
  readonly #host: Host;
  readonly #lanes = new Set<Lane>();
  #active = 0;
  #onIdle: (() => void) | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Register what the host can answer. */
  addTo(server: Server): void {
    const systems = this.#host.describeSystems();
    const memories = this.#host.describeMemory();
    const evaluators = this.#host.describeEvaluators();
    if (systems.systems.length > 0) {
      this.#register(server, "cbench.v1.System", {
        Describe: constant(SystemDescribeResponse.encode(systems).finish()),
        Process: this.#unary("process", ProcessRequest, ProcessResponse),
        ProcessConversation: this.#unary(
          "converse",
          ProcessConversationRequest,
          ProcessConversationResponse,
        ),
      }, { ProcessStream: this.#stream(processBatch, processOutcome) });
    }
    if (memories.systems.length > 0) {
      this.#register(server, "cbench.v1.MemorySystem", {
        Describe: constant(MemorySystemDescribeResponse.encode(memories).finish()),
        Reset: this.#unary("reset", ResetRequest, ResetResponse),
        Ingest: this.#unary("ingest", IngestRequest, IngestResponse),
        Query: this.#unary("query", QueryRequest, QueryResponse),
      });
    }
    if (evaluators.evaluators.length > 0) {
      this.#register(server, "cbench.v1.Evaluator", {
        Describe: constant(EvaluatorDescribeResponse.encode(evaluators).finish()),
        Score: this.#unary("score", ScoreRequest, ScoreResponse),
      }, { ScoreStream: this.#stream(scoreBatch, scoreOutcome) });
    }
  }

  /** Whether no call is in progress. */
  get isIdle(): boolean {
    return this.#active === 0;
  }

  /** Take no new calls, and wait until those held are answered. */
  async drain(): Promise<void> {
    this.#host.isDraining = true;
    for (const lane of this.#lanes) lane.close();
    while (!this.isIdle) await new Promise<void>((resolve) => (this.#onIdle = resolve));
  }

  #register(
    server: Server,
    service: string,
    unary: Record<string, Unary>,
    streams: Record<string, Bidi> = {},
  ): void {
    this.names.push(service);
    const method = (name: string, isStream: boolean): [string, MethodDefinition<Buffer, Buffer>] => [
      name,
      {
        path: `/${service}/${name}`,
        requestStream: isStream,
        responseStream: isStream,
        requestSerialize: asBytes,
        requestDeserialize: asBytes,
        responseSerialize: asBytes,
        responseDeserialize: asBytes,
      },
    ];
    const methods = [
      ...Object.keys(unary).map((name) => method(name, false)),
      ...Object.keys(streams).map((name) => method(name, true)),
    ];
    server.addService(Object.fromEntries(methods), { ...unary, ...streams });
  }

  #unary<Q extends object, R>(kind: Kind, requests: Codec<Q>, responses: Codec<R>): Unary {
    return (call, reply) => {
      const done = this.#begin();
      const finish = (outcome: unknown): void => {
        done();
        const data = outcome instanceof RemoteFailure ? outcome : responses.encode(outcome as R).finish();
        const failure = data instanceof RemoteFailure ? data : tooLarge(data);
        if (failure !== undefined) reply(statusOf(failure));
        else reply(null, asBytes(data as Uint8Array));
      };
      try {
        const request = decodeRequest(requests, call.request);
        const callId = "callId" in request ? (request.callId as string) : "";
        const deadline = Number(call.getDeadline());
        const timeout = Number.isFinite(deadline) ? deadline - Date.now() : undefined;
        const told = (key: string) => call.metadata.get(key)[0]?.toString();
        const current = new CurrentCall(callId, timeout, told("traceparent"), told("tracestate"));
        const job = this.#host.submit(kind, request, current, (_, outcome) => { finish(outcome); });
        call.on("cancelled", () => { job.cancel(); });
      } catch (error) {
        if (!(error instanceof RemoteFailure)) throw error;
        finish(error);
      }
    };
  }

  #stream(decodeBatch: (data: Buffer) => Batch, encode: EncodeOutcome): Bidi {
    return (stream) => {
      const done = this.#begin();
      const lane = new Lane(this.#host, stream, 1, encode);
      this.#lanes.add(lane);
      let ending: RemoteFailure | undefined = shuttingDown();
      const onBatch = async (data: Buffer): Promise<void> => {
        const batch = decodeBatch(data);
        await lane.startAll(batch.calls);
        for (const callId of batch.cancelCallIds) lane.cancel(callId);
        await lane.backlogWritten();
      };
      consume(stream, onBatch).then(
        () => { ending = undefined; },
        (error: unknown) => { ending = error instanceof RemoteFailure ? error : brokenStream(error); },
      ).finally(() => { lane.close(); });
      stream.on("cancelled", () => { lane.abandon(); });
      if (this.#host.isDraining) lane.close();
      void lane.send().finally(() => {
        this.#lanes.delete(lane);
        lane.abandon();
        // Only draining closes a lane whose stream is still being read.
        if (ending === undefined) stream.end();
        else if (!stream.destroyed) stream.emit("error", statusOf(ending));
        done();
      });
    };
  }

  #begin(): () => void {
    this.#active += 1;
    return () => {
      this.#active -= 1;
      if (this.#active === 0) this.#onIdle?.();
    };
  }
}

function constant(data: Uint8Array): Unary {
  return (_, reply) => { reply(null, asBytes(data)); };
}

function decodeRequest<T>(type: Codec<T>, data: Buffer): T {
  try {
    return decodeMessage(type as { decode(input: unknown): T }, data);
  } catch (error) {
    throw new RemoteFailure(`the message cannot be decoded: ${messageOf(error)}`, {
      reason: "INVALID_ARGUMENT",
    });
  }
}

function brokenStream(error: unknown): RemoteFailure {
  return new RemoteFailure(`the stream broke: ${messageOf(error)}`, { reason: "CANCELLED" });
}

function processBatch(data: Buffer): Batch {
  const { calls, cancelCallIds } = decodeRequest(ProcessStreamRequest, data);
  const asked = calls.map(({ request = emptyMessage(ProcessRequest), timeout, traceparent, tracestate }) => ({
    kind: "process" as const,
    request,
    callId: request.callId,
    timeout,
    traceparent,
    tracestate,
  }));
  return { calls: asked, cancelCallIds };
}

function scoreBatch(data: Buffer): Batch {
  const { calls, cancelCallIds } = decodeRequest(ScoreStreamRequest, data);
  const asked = calls.map(({ request = emptyMessage(ScoreRequest), callId, timeout, traceparent, tracestate }) => ({
    kind: "score" as const,
    request,
    callId,
    timeout,
    traceparent,
    tracestate,
  }));
  return { calls: asked, cancelCallIds };
}

function resultOf<Response>(outcome: Response | RemoteFailure) {
  return outcome instanceof RemoteFailure
    ? { $case: "failure" as const, value: encodeFailure(outcome) }
    : { $case: "response" as const, value: outcome };
}

const processOutcome: EncodeOutcome = (callId, _, outcome) =>
  ProcessOutcome.encode({ callId, result: resultOf(outcome as ProcessResponse | RemoteFailure) }).finish();

const scoreOutcome: EncodeOutcome = (callId, _, outcome) =>
  ScoreOutcome.encode({ callId, result: resultOf(outcome as ScoreResponse | RemoteFailure) }).finish();
