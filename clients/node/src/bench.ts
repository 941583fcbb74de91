/** A client of a daemon: it starts runs, follows them and reads their rows. */

import { randomUUID } from "node:crypto";

import type { Client, ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import type { Assessment } from "./adapters.js";
import { asBytes, headers, openClient, type Connection } from "./channel.js";
import { Refused, type ClientError } from "./errors.js";
import { encodeExample, type Example } from "./example.js";
import { follow } from "./follow.js";
import {
  CancelRunRequest,
  CancelRunResponse,
  DeleteRunRequest,
  DeleteRunResponse,
  EvaluateRequest,
  EvaluateResponse,
  GetRunRequest,
  GetRunResponse,
  ListComponentsRequest,
  ListComponentsResponse,
  ListRowsRequest,
  ListRowsResponse,
  ListRunsRequest,
  ListRunsResponse,
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
import { ScoreRequest, ScoreResponse } from "./gen/cbench/v1/evaluator.js";
import { decodeMessage, emptyMessage } from "./messages.js";
import { decodeRow, decodeRun, encodeState, isFinal, type Row, type Run, type RunEvent, type RunState } from "./runs.js";
import { encodeEvaluators, encodeSpec, type EvaluatorRef, type RunSpec } from "./spec.js";
import { errorOf, findsNobody, isLost, isStatus } from "./status.js";
import { decodeFields, encodeFields } from "./values.js";

const BENCH = "cbench.v1.Bench";
const UPLOAD_BYTES = 1024 * 1024;
/** How long a first contact that breaks off, unlike one that finds no daemon, is tried again. */
const FIRST_CONTACT_MS = 10_000;

/** A message type, as the generated code has it. */
interface Codec<T> {
  decode(input: never): T;
  encode(message: T): { finish(): Uint8Array };
}

/** How to follow a run. */
export interface FollowOptions {
  /** Whether rows are among the events; true by default. */
  includeRows?: boolean;
  /** How long the daemon may be away; by default without limit. */
  reconnectForMs?: number;
}

/** What a daemon offers: names that a run may use. */
export interface Components {
  readonly datasets: string[];
  readonly evaluators: string[];
  readonly metrics: string[];
  readonly systems: string[];
  readonly memorySystems: string[];
  readonly serverVersion: string;
}

/**
 * A client of one daemon.
 *
 * Throws `Refused` for what the daemon declines, and `Unreachable` if it cannot
 * be reached.
 */
export class BenchClient {
  readonly target: string;
  readonly #timeoutMs: number;
  readonly #connection: Connection;
  readonly #client: Client;
  #hasAnswered = false;
  #isClosed = false;

  /** `timeoutMs`, half a minute by default, bounds single requests; following has no limit. */
  constructor(target = "127.0.0.1:50051", options: Connection & { timeoutMs?: number } = {}) {
    this.target = target;
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.#connection = options;
    this.#client = openClient(target, options);
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
      this.#stream("Evaluate", EvaluateRequest, request, EvaluateResponse);
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
  async start(spec: RunSpec, options: { requestId?: string } = {}): Promise<string> {
    const follow = { ...options, includeRows: false, reconnectForMs: this.#timeoutMs };
    for await (const event of this.evaluate(spec, follow)) {
      if (event.kind === "accepted") return event.run.runId;
    }
    throw new Refused(`${this.target} took the run and never named it.`, "INTERNAL");
  }

  /** Get a run. */
  async get(runId: string): Promise<Run> {
    return runOf(await this.#call("GetRun", GetRunRequest, { runId }, GetRunResponse));
  }

  /** List runs, newest first, without their configuration. */
  async *list(
    options: { states?: readonly RunState[]; labels?: Record<string, string> } = {},
  ): AsyncGenerator<Run> {
    const states = (options.states ?? []).map(encodeState);
    const labels = new Map(Object.entries(options.labels ?? {}));
    let pageToken = "";
    do {
      const request = { pageSize: 0, pageToken, states, labels };
      const page = await this.#call("ListRuns", ListRunsRequest, request, ListRunsResponse);
      yield* page.runs.map(decodeRun);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** List the rows of a run, by system and then in dataset order. */
  async *rows(
    runId: string,
    options: {
      includeProcessed?: boolean;
      includeOriginal?: boolean;
      failedOnly?: boolean;
      system?: string;
    } = {},
  ): AsyncGenerator<Row> {
    let pageToken = "";
    do {
      const request = { ...emptyMessage(ListRowsRequest), runId, pageToken, ...options };
      const page = await this.#call("ListRows", ListRowsRequest, request, ListRowsResponse);
      yield* page.rows.map(decodeRow);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }

  /** Ask a run to stop; its rows are kept. */
  async cancel(runId: string): Promise<Run> {
    return runOf(await this.#call("CancelRun", CancelRunRequest, { runId }, CancelRunResponse));
  }

  /** Take a cancelled or failed run up again where it stopped. */
  async resume(runId: string): Promise<Run> {
    return runOf(await this.#call("ResumeRun", ResumeRunRequest, { runId }, ResumeRunResponse));
  }

  /** Delete a finished run with its rows. */
  async delete(runId: string): Promise<void> {
    await this.#call("DeleteRun", DeleteRunRequest, { runId }, DeleteRunResponse);
  }

  /** Rescore a finished run as a new run. */
  async rescore(
    runId: string,
    evaluators: readonly EvaluatorRef[] = [],
    options: { referencesUpload?: string; labels?: Record<string, string>; requestId?: string } = {},
  ): Promise<Run> {
    const request = {
      runId,
      evaluators: encodeEvaluators(evaluators),
      referencesUpload: options.referencesUpload ?? "",
      labels: new Map(Object.entries(options.labels ?? {})),
      requestId: options.requestId ?? randomUUID(),
    };
    return runOf(await this.#call("Rescore", RescoreRequest, request, RescoreResponse));
  }

  /** Score one pair with an evaluator of the daemon. */
  async score(
    evaluator: string,
    original: Example | Record<string, unknown>,
    processed: Example | Record<string, unknown>,
    options: Record<string, unknown> = {},
  ): Promise<Required<Assessment>> {
    const request: ScoreRequest = {
      evaluator,
      original: encodeExample(original),
      processed: encodeExample(processed),
      options: encodeFields(Object.entries(options), "options"),
    };
    const path = "/cbench.v1.Evaluator/Score";
    const response = await this.#unary(path, ScoreRequest, request, ScoreResponse);
    const scores = Object.fromEntries([...response.scores].sort());
    return { scores, explanation: response.explanation, details: decodeFields(response.details) };
  }

  /** Store examples; the digest is what `DatasetRef.upload` wants. */
  async upload(
    examples: Iterable<Example | Record<string, unknown>> | AsyncIterable<Example | Record<string, unknown>>,
  ): Promise<{ digest: string; count: number }> {
    let settle: (error: ServiceError | null, data?: Buffer) => void = () => {};
    const answer = new Promise<Buffer>((resolve, reject) => {
      settle = (error, data) => { if (error) reject(this.#error(error)); else resolve(data as Buffer); };
    });
    answer.catch(() => {});
    const path = `/${BENCH}/UploadExamples`;
    const sending = this.#client.makeClientStreamRequest<Buffer, Buffer>(
      path, asBytes, asBytes, headers(this.#connection), settle,
    );
    // Its error comes through the answer, too.
    sending.on("error", () => {});
    const send = async (batch: UploadExamplesRequest): Promise<void> => {
      const data = asBytes(UploadExamplesRequest.encode(batch).finish());
      await new Promise<void>((resolve) => sending.write(data, () => { resolve(); }));
    };
    try {
      let [batch, size]: [UploadExamplesRequest, number] = [{ examples: [] }, 0];
      for await (const example of examples) {
        const encoded = encodeExample(example);
        batch.examples.push(encoded);
        size += UploadExamplesRequest.encode({ examples: [encoded] }).finish().length;
        if (size < UPLOAD_BYTES) continue;
        await send(batch);
        [batch, size] = [{ examples: [] }, 0];
      }
      if (batch.examples.length > 0) await send(batch);
    } catch (error) {
      sending.cancel();
      throw error;
    }
    sending.end();
    const response = decodeMessage(UploadExamplesResponse, await answer);
    return { digest: response.digest, count: Number(response.exampleCount) };
  }

  /** List what a run may name. */
  async components(): Promise<Components> {
    const found = await this.#call("ListComponents", ListComponentsRequest, {}, ListComponentsResponse);
    const names = (items: { name: string }[]): string[] => items.map((item) => item.name);
    return {
      datasets: names(found.datasets),
      evaluators: names(found.evaluators),
      metrics: names(found.metrics),
      systems: names(found.systems),
      memorySystems: names(found.memorySystems),
      serverVersion: found.serverVersion,
    };
  }

  /** Close the connection; loops that follow a run end with an error. */
  close(): void {
    this.#isClosed = true;
    this.#client.close();
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
      return this.#stream("WatchRun", WatchRunRequest, request, WatchRunResponse);
    };
    const mayWait = (error: ServiceError, silenceMs: number): void => {
      if (!this.#mayWait(error, silenceMs, options.reconnectForMs)) throw this.#error(error);
    };
    const isOver = async (id: string, last: number): Promise<boolean> => {
      const path = `/${BENCH}/GetRun`;
      const { run } = await this.#ask(path, GetRunRequest, { runId: id }, GetRunResponse);
      return run !== undefined && isFinal(decodeRun(run).state) && Number(run.lastSequence) <= last;
    };
    const source = { watch, isOver, mayWait, ...(start && { start }) };
    for await (const event of follow(source, runId, after)) {
      this.#hasAnswered = true;
      yield event;
    }
  }

  #mayWait(error: ServiceError, silenceMs: number, limitMs: number | undefined): boolean {
    if (this.#isClosed || !isLost(error)) return false;
    if (this.#hasAnswered) return limitMs === undefined || silenceMs < limitMs;
    return !findsNobody(error) && silenceMs < Math.min(FIRST_CONTACT_MS, limitMs ?? FIRST_CONTACT_MS);
  }

  #stream<Q, R extends { events: EventMessage[] }>(
    method: string,
    requests: Codec<Q>,
    request: Q,
    responses: Codec<R>,
  ): ClientReadableStream<EventMessage[]> {
    return this.#client.makeServerStreamRequest(
      `/${BENCH}/${method}`,
      (message: Q) => asBytes(requests.encode(message).finish()),
      (data: Buffer) => decodeMessage(responses as { decode(input: unknown): R }, data).events,
      request,
      headers(this.#connection),
    );
  }

  #call<Q, R>(method: string, requests: Codec<Q>, request: Q, responses: Codec<R>): Promise<R> {
    return this.#unary(`/${BENCH}/${method}`, requests, request, responses);
  }

  async #unary<Q, R>(path: string, requests: Codec<Q>, request: Q, responses: Codec<R>): Promise<R> {
    try {
      const response = await this.#ask(path, requests, request, responses);
      this.#hasAnswered = true;
      return response;
    } catch (error) {
      throw isStatus(error) ? this.#error(error) : error;
    }
  }

  #ask<Q, R>(path: string, requests: Codec<Q>, request: Q, responses: Codec<R>): Promise<R> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        path,
        (message: Q) => asBytes(requests.encode(message).finish()),
        (data: Buffer) => decodeMessage(responses as { decode(input: unknown): R }, data),
        request,
        headers(this.#connection),
        { deadline: Date.now() + this.#timeoutMs },
        (error, response) => { if (error) reject(error); else resolve(response as R); },
      );
    });
  }

  #error(error: ServiceError): ClientError {
    return errorOf(error, this.target, Boolean(this.#connection.token));
  }
}

function runOf(response: { run?: RunMessage | undefined }): Run {
  if (response.run === undefined) throw new Refused("the daemon answered without a run.", "INTERNAL");
  return decodeRun(response.run);
}
