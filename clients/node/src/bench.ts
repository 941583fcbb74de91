/** A client of a daemon: it starts runs, follows them and reads their rows. */

import { randomUUID } from "node:crypto";

import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import type { Assessment } from "./adapters.js";
import { asBytes, type Connection } from "./channel.js";
import { Refused } from "./errors.js";
import { encodeExample, type Example } from "./example.js";
import { follow } from "./follow.js";
import {
  CancelRunRequest,
  CancelRunResponse,
  CompareRequest,
  CompareResponse,
  DeleteRunRequest,
  DeleteRunResponse,
  EvaluateRequest,
  EvaluateResponse,
  ExplainWaitRequest,
  ExplainWaitResponse,
  ExportRequest,
  ExportResponse,
  GateRequest,
  GateResponse,
  GetRunRequest,
  GetRunResponse,
  ImportRequest,
  ImportResponse,
  ListComponentsRequest,
  ListComponentsResponse,
  ListRowsRequest,
  ListRowsResponse,
  ListRunsRequest,
  ListRunsResponse,
  PinRunRequest,
  PinRunResponse,
  PruneRunsRequest,
  PruneRunsResponse,
  ReportRequest,
  ReportResponse,
  RescoreRequest,
  RescoreResponse,
  ResumeRunRequest,
  ResumeRunResponse,
  UploadExamplesRequest,
  UploadExamplesResponse,
  WatchRunRequest,
  WatchRunResponse,
  type Run as RunMessage,
  type RunEvent as EventMessage,
} from "./gen/cbench/v1/bench.js";
import { Comparison as ComparisonMessage } from "./gen/cbench/v1/comparison.js";
import { ScoreRequest, ScoreResponse } from "./gen/cbench/v1/evaluator.js";
import { emptyMessage } from "./messages.js";
import {
  compareRequestShape,
  comparisonShape,
  exportRequestShape,
  gateRequestShape,
  gateResponseShape,
  pruneRunsRequestShape,
  pruneRunsResponseShape,
  reportRequestShape,
  type CompareRequest as PlainCompare,
  type Comparison,
  type Components,
  type EvaluatorRef,
  type ExportRequest as PlainExport,
  type Gated,
  type GateRequest as PlainGate,
  type Pruned,
  type PruneRunsRequest as PlainPrune,
  type ReportRequest as PlainReport,
  type RunSpec,
  type RunState,
} from "./gen/plain.js";
import { decodePlain, encodePlain } from "./plain.js";
import { decodeComponents, decodeRow, decodeRun, encodeState, isFinal, type Row, type Run, type RunEvent } from "./runs.js";
import { Requests, type Codec, type RequestOptions } from "./requests.js";
import { encodeEvaluators, encodeSpec } from "./spec.js";
import { decodeFields, encodeFields } from "./values.js";

const BENCH = "cbench.v1.Bench";
const UPLOAD_BYTES = 1024 * 1024;

/** How to follow a run. */
export interface FollowOptions extends RequestOptions {
  /** Whether rows are among the events; true by default. */
  includeRows?: boolean;
  /** How long the daemon may be away; by default without limit. */
  reconnectForMs?: number;
}

/**
 * A client of one daemon.
 *
 * Several daemons of one store are named with commas, `host:a,host:b`: the first
 * that answers is used, and when it is lost the next.
 *
 * Throws `Refused` for what the daemon declines, and `Unreachable` if it cannot
 * be reached.
 */
export class BenchClient {
  readonly target: string;
  readonly #timeoutMs: number;
  readonly #requests: Requests;

  /** `timeoutMs`, half a minute by default, bounds single requests; following has no limit. */
  constructor(target = "127.0.0.1:50051", options: Connection & { timeoutMs?: number } = {}) {
    this.target = target;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#requests = new Requests(target, options, this.#timeoutMs);
  }

  /**
   * Start a run, at the first `next`, and follow it to its end.
   *
   * A lost connection is taken up again where it broke: every stored event
   * comes once and in order. Leaving the loop does not stop the run.
   */
  evaluate(spec: RunSpec, options: FollowOptions & { requestId?: string } = {}): AsyncGenerator<RunEvent> {
    const { includeRows = true, requestId = randomUUID() } = options;
    const request = { spec: encodeSpec(spec), requestId, omitRows: !includeRows };
    const start = (): ClientReadableStream<EventMessage[]> =>
      this.#stream("Evaluate", EvaluateRequest, request, EvaluateResponse, options.signal);
    return this.#follow(start, "", 0, options, false);
  }

  /** Follow a run after a sequence, to its end; otherwise as `evaluate`. */
  watch(
    runId: string,
    options: FollowOptions & { after?: number; includeProcessed?: boolean } = {},
  ): AsyncGenerator<RunEvent> {
    return this.#follow(undefined, runId, options.after ?? 0, options, options.includeProcessed ?? false);
  }

  /** Start a run, and return its id without following it. */
  async start(spec: RunSpec, options: RequestOptions & { requestId?: string } = {}): Promise<string> {
    const follow = { ...options, includeRows: false, reconnectForMs: this.#timeoutMs };
    for await (const event of this.evaluate(spec, follow)) {
      if (event.kind === "accepted") return event.run.runId;
    }
    throw new Refused(`${this.target} took the run and never named it.`, "INTERNAL");
  }

  /** Get a run. */
  async get(runId: string, options: RequestOptions = {}): Promise<Run> {
    return runOf(await this.#call("GetRun", GetRunRequest, { runId }, GetRunResponse, options));
  }

  /** List runs, newest first, without their configuration; `mine` are those started with this client's token. */
  async *list(
    options: RequestOptions & { states?: readonly RunState[]; labels?: Record<string, string>; mine?: boolean } = {},
  ): AsyncGenerator<Run> {
    const states = (options.states ?? []).map(encodeState);
    const labels = new Map(Object.entries(options.labels ?? {}));
    let pageToken = "";
    do {
      const request = { pageSize: 0, pageToken, states, labels, mine: options.mine ?? false };
      const page = await this.#call("ListRuns", ListRunsRequest, request, ListRunsResponse, options);
      yield* page.runs.map(decodeRun);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** List the rows of a run, by system and then in dataset order. */
  async *rows(
    runId: string,
    options: RequestOptions & {
      includeProcessed?: boolean;
      includeOriginal?: boolean;
      failedOnly?: boolean;
      system?: string;
    } = {},
  ): AsyncGenerator<Row> {
    const { signal, ...wanted } = options;
    let pageToken = "";
    do {
      const request = { ...emptyMessage(ListRowsRequest), runId, pageToken, ...wanted };
      const page = await this.#call("ListRows", ListRowsRequest, request, ListRowsResponse, { signal });
      yield* page.rows.map(decodeRow);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** Ask a run to stop; its rows are kept. */
  async cancel(runId: string, options: RequestOptions = {}): Promise<Run> {
    return runOf(await this.#call("CancelRun", CancelRunRequest, { runId }, CancelRunResponse, options));
  }

  /** Take a cancelled or failed run up again where it stopped, with another budget if one is given. */
  async resume(runId: string, options: RequestOptions & { budgetUsd?: number } = {}): Promise<Run> {
    const request = { ...emptyMessage(ResumeRunRequest), runId, budgetUsd: options.budgetUsd };
    return runOf(await this.#call("ResumeRun", ResumeRunRequest, request, ResumeRunResponse, options));
  }

  /** Delete a finished run with its rows. */
  async delete(runId: string, options: RequestOptions = {}): Promise<void> {
    await this.#call("DeleteRun", DeleteRunRequest, { runId }, DeleteRunResponse, options);
  }

  /** Keep a run from being pruned, and return its id; `last` and prefixes name it, too. */
  async pin(runId: string, options: RequestOptions = {}): Promise<string> {
    const response = await this.#call("PinRun", PinRunRequest, { runId, unpin: false }, PinRunResponse, options);
    return response.runId;
  }

  /** Let a run be pruned again, and return its id. */
  async unpin(runId: string, options: RequestOptions = {}): Promise<string> {
    const response = await this.#call("PinRun", PinRunRequest, { runId, unpin: true }, PinRunResponse, options);
    return response.runId;
  }

  /** Delete finished runs that are old, many or large; pinned ones stay. */
  async prune(options: RequestOptions & PlainPrune): Promise<Pruned> {
    const { signal, ...asked } = options;
    const request = encodePlain(pruneRunsRequestShape, asked) as PruneRunsRequest;
    const response = await this.#call("PruneRuns", PruneRunsRequest, request, PruneRunsResponse, { signal });
    return decodePlain(pruneRunsResponseShape, response) as unknown as Pruned;
  }

  /** Rescore a finished run as a new run. */
  async rescore(
    runId: string,
    evaluators: readonly EvaluatorRef[] = [],
    options: RequestOptions & Partial<Omit<RescoreRequest, "runId" | "evaluators" | "labels">> & {
      labels?: Record<string, string>;
    } = {},
  ): Promise<Run> {
    const { signal, labels = {}, requestId = randomUUID(), ...further } = options;
    const request = {
      ...emptyMessage(RescoreRequest),
      ...further,
      runId,
      evaluators: encodeEvaluators(evaluators),
      labels: new Map(Object.entries(labels)),
      requestId,
    };
    return runOf(await this.#call("Rescore", RescoreRequest, request, RescoreResponse, { signal }));
  }

  /** Say which differences between systems of one or two runs can be claimed. */
  async compare(runId: string, options: RequestOptions & Omit<PlainCompare, "runId"> = {}): Promise<Comparison> {
    const { signal, ...further } = options;
    const request = encodePlain(compareRequestShape, { ...further, runId }) as CompareRequest;
    const { comparison } = await this.#call("Compare", CompareRequest, request, CompareResponse, { signal });
    return decodePlain(comparisonShape, comparison ?? emptyMessage(ComparisonMessage)) as unknown as Comparison;
  }

  /** Check a system of a run against policies. */
  async gate(
    runId: string, policies: readonly string[], options: RequestOptions & Omit<PlainGate, "runId" | "policies"> = {},
  ): Promise<Gated> {
    const { signal, ...further } = options;
    const request = encodePlain(gateRequestShape, { ...further, runId, policies }) as GateRequest;
    const response = await this.#call("Gate", GateRequest, request, GateResponse, { signal });
    return decodePlain(gateResponseShape, response) as unknown as Gated;
  }

  /** Render a run as one HTML page that needs no network, in pieces. */
  report(runId: string, options: RequestOptions & Omit<PlainReport, "runId"> = {}): AsyncGenerator<Buffer> {
    const { signal, ...further } = options;
    const request = encodePlain(reportRequestShape, { ...further, runId }) as ReportRequest;
    return this.#requests.pieces(`/${BENCH}/Report`, ReportRequest, request, ReportResponse, { signal });
  }

  /** Write a run in a format for other programs, in pieces; the format `run` is for `import`. */
  export(
    runId: string, format: string, options: RequestOptions & Omit<PlainExport, "runId" | "format"> = {},
  ): AsyncGenerator<Buffer> {
    const { signal, ...further } = options;
    const request = encodePlain(exportRequestShape, { ...further, runId, format }) as ExportRequest;
    return this.#requests.pieces(`/${BENCH}/Export`, ExportRequest, request, ExportResponse, { signal });
  }

  /** Store a run that `export` wrote in the format `run`, from pieces of at most 128 MB. */
  async import(
    pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, options: RequestOptions & { newId?: boolean } = {},
  ): Promise<{ run: Run; alreadyStored: boolean }> {
    async function* messages(): AsyncGenerator<ImportRequest> {
      for await (const piece of pieces) yield { content: asBytes(piece), newId: options.newId ?? false };
    }
    const path = `/${BENCH}/Import`;
    const response = await this.#requests.send(path, ImportRequest, messages(), ImportResponse, options);
    return { run: runOf(response), alreadyStored: response.alreadyStored };
  }

  /** Say why a system that you started for a run in progress is away. */
  async explainWait(runId: string, reason: string, options: RequestOptions = {}): Promise<Run> {
    const request = { runId, reason };
    return runOf(await this.#call("ExplainWait", ExplainWaitRequest, request, ExplainWaitResponse, options));
  }

  /** Score one pair with an evaluator of the daemon. */
  async score(
    evaluator: string,
    original: Example | Record<string, unknown>,
    processed: Example | Record<string, unknown>,
    options: Record<string, unknown> = {},
    request: RequestOptions = {},
  ): Promise<Required<Assessment>> {
    const message: ScoreRequest = {
      evaluator,
      original: encodeExample(original),
      processed: encodeExample(processed),
      options: encodeFields(Object.entries(options), "options"),
    };
    const path = "/cbench.v1.Evaluator/Score";
    const response = await this.#requests.unary(path, ScoreRequest, message, ScoreResponse, request);
    const scores = Object.fromEntries([...response.scores].sort());
    return { scores, explanation: response.explanation, details: decodeFields(response.details) };
  }

  /** Store examples; the digest is what `DatasetRef.upload` wants. */
  async upload(
    examples: Iterable<Example | Record<string, unknown>> | AsyncIterable<Example | Record<string, unknown>>,
    options: RequestOptions = {},
  ): Promise<{ digest: string; count: number }> {
    async function* batches(): AsyncGenerator<UploadExamplesRequest> {
      let [batch, size]: [UploadExamplesRequest, number] = [{ examples: [] }, 0];
      for await (const example of examples) {
        const encoded = encodeExample(example);
        batch.examples.push(encoded);
        size += UploadExamplesRequest.encode({ examples: [encoded] }).finish().length;
        if (size < UPLOAD_BYTES) continue;
        yield batch;
        [batch, size] = [{ examples: [] }, 0];
      }
      if (batch.examples.length > 0) yield batch;
    }
    const path = `/${BENCH}/UploadExamples`;
    const response = await this.#requests.send(path, UploadExamplesRequest, batches(), UploadExamplesResponse, options);
    return { digest: response.digest, count: Number(response.exampleCount) };
  }

  /** List what a run may name. */
  async components(options: RequestOptions = {}): Promise<Components> {
    const found = await this.#call("ListComponents", ListComponentsRequest, {}, ListComponentsResponse, options);
    return decodeComponents(found);
  }

  /** Close the connection; loops that follow a run end with an error. */
  close(): void {
    this.#requests.close();
  }

  /** Close it at the end of a block that begins with `using`. */
  [Symbol.dispose](): void {
    this.close();
  }

  async *#follow(
    start: (() => ClientReadableStream<EventMessage[]>) | undefined,
    runId: string,
    after: number,
    options: FollowOptions,
    includeProcessed: boolean,
  ): AsyncGenerator<RunEvent> {
    const omitRows = !(options.includeRows ?? true);
    const watch = (id: string, afterSequence: number): ClientReadableStream<EventMessage[]> => {
      const request = { runId: id, afterSequence: BigInt(afterSequence), omitRows, includeProcessed };
      return this.#stream("WatchRun", WatchRunRequest, request, WatchRunResponse, options.signal);
    };
    const mayWait = (error: ServiceError, silenceMs: number): void => {
      if (!this.#requests.mayWait(error, silenceMs, options.reconnectForMs)) throw this.#requests.error(error);
    };
    const isOver = async (id: string, last: number): Promise<boolean> => {
      const path = `/${BENCH}/GetRun`;
      const { run } = await this.#requests.ask(path, GetRunRequest, { runId: id }, GetRunResponse, options);
      return run !== undefined && isFinal(decodeRun(run).state) && Number(run.lastSequence) <= last;
    };
    const source = { watch, isOver, mayWait, signal: options.signal, ...(start && { start }) };
    for await (const event of follow(source, runId, after)) {
      this.#requests.hasAnswered = true;
      yield event;
    }
  }

  #stream<Q, R extends { events: EventMessage[] }>(
    method: string, requests: Codec<Q>, request: Q, responses: Codec<R>, signal: AbortSignal | undefined,
  ): ClientReadableStream<EventMessage[]> {
    return this.#requests.stream(`/${BENCH}/${method}`, requests, request, responses, ({ events }) => events, signal);
  }

  #call<Q, R>(
    method: string, requests: Codec<Q>, request: Q, responses: Codec<R>, options: RequestOptions,
  ): Promise<R> {
    return this.#requests.unary(`/${BENCH}/${method}`, requests, request, responses, options);
  }
}

function runOf(response: { run?: RunMessage | undefined }): Run {
  if (response.run === undefined) throw new Refused("the daemon answered without a run.", "INTERNAL");
  return decodeRun(response.run);
}
