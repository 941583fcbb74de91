/** Turns, usage, results and failures, to messages and back. */

import { BinaryReader } from "@bufbuild/protobuf/wire";

import { RemoteFailure, type Origin } from "./errors.js";
import type { Turn as TurnMessage } from "./gen/cbench/v1/example.js";
import { FailureOrigin, type Failure } from "./gen/cbench/v1/failure.js";
import type { ProcessResponse, Usage as UsageMessage } from "./gen/cbench/v1/system.js";
import type { Duration } from "./gen/google/protobuf/duration.js";
import { asInteger, asRecord, decodeFields, encodeFields, inRange, wellFormed } from "./values.js";

// `ignoreBOM` keeps a byte order mark, which is text like any other.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const decodeText = (bytes: Uint8Array): string => utf8.decode(bytes);

/** Decode a whole message. Throws for bytes that are not one. */
export function decodeMessage<T>(type: { decode(reader: BinaryReader): T }, data: Uint8Array): T {
  const reader = new BinaryReader(data, decodeText);
  const message = type.decode(reader);
  if (reader.pos !== reader.len) throw new Error(`it ends after ${reader.pos} of ${reader.len} bytes`);
  return message;
}

/** A message with nothing set. */
export function emptyMessage<T>(type: { decode(data: Uint8Array): T }): T {
  return type.decode(new Uint8Array());
}

/** One turn of a conversation; any further keys are its fields. */
export interface Turn {
  /** Who speaks, as a model sees it: `user` or `assistant`. */
  role: string;
  /** What is said. */
  content: string;
  /** The speaker's own name. */
  speaker?: string;
  /** When it was said. */
  time?: string;
  /** The session it belongs to. */
  session?: string;
  [field: string]: unknown;
}

const TURN_TEXTS = ["role", "content", "speaker", "time", "session"] as const;

/** Encode one turn. */
export function encodeTurn(turn: Record<string, unknown>): TurnMessage {
  const rest = new Map(Object.entries(turn));
  const texts = { role: "", content: "", speaker: "", time: "", session: "" };
  for (const name of TURN_TEXTS) {
    const text = rest.get(name);
    if (typeof text !== "string") continue;
    texts[name] = wellFormed(text, ["turn", name]);
    rest.delete(name);
  }
  return { ...texts, fields: encodeFields(rest, "turn") };
}

/** Decode one turn. */
export function decodeTurn(message: TurnMessage): Turn {
  const turn: Turn = { role: message.role, content: message.content };
  if (message.speaker) turn.speaker = message.speaker;
  if (message.time) turn.time = message.time;
  if (message.session) turn.session = message.session;
  return { ...turn, ...decodeFields(message.fields, "turn") };
}

/** What a call cost, in the shape OpenAI gives it, and two keys of ours. */
export interface Usage {
  prompt_tokens?: number | bigint;
  completion_tokens?: number | bigint;
  total_tokens?: number | bigint;
  /** Those of `prompt_tokens` that the model had in its cache. */
  cached_prompt_tokens?: number | bigint;
  /** Requests made to a model, further attempts included. */
  requests?: number | bigint;
  /** Those of `requests` that were given up before an answer came. */
  abandoned_requests?: number | bigint;
  cost_usd?: number;
  compute_seconds?: number;
}

/** Encode usage; what is not a number is left out. */
export function encodeUsage(usage: unknown): UsageMessage | undefined {
  const record = typeof usage === "object" && usage !== null ? asRecord(usage) : undefined;
  const known = new Map(record ?? []);
  if (known.size === 0) return undefined;
  const count = (name: string): bigint | undefined => {
    const value = known.get(name);
    const isCount = typeof value === "bigint" || Number.isSafeInteger(value);
    return isCount ? inRange(BigInt(value as bigint | number), ["usage", name]) : undefined;
  };
  const seconds = asNumber(known.get("compute_seconds"));
  return {
    promptTokens: count("prompt_tokens"),
    completionTokens: count("completion_tokens"),
    totalTokens: count("total_tokens"),
    cachedPromptTokens: count("cached_prompt_tokens"),
    requests: count("requests"),
    abandonedRequests: count("abandoned_requests"),
    costUsd: asNumber(known.get("cost_usd")),
    computeTime: seconds === undefined ? undefined : durationOf(seconds * 1e3),
  };
}

/** A number or a `Float` as a number, undefined for anything else. */
export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" || value instanceof Number ? Number(value) : undefined;
}

/** Decode usage; what was not reported is left out. */
export function decodeUsage(message: UsageMessage): Usage {
  const usage: Usage = {};
  if (message.promptTokens !== undefined) usage.prompt_tokens = asInteger(message.promptTokens);
  if (message.completionTokens !== undefined) {
    usage.completion_tokens = asInteger(message.completionTokens);
  }
  if (message.totalTokens !== undefined) usage.total_tokens = asInteger(message.totalTokens);
  if (message.cachedPromptTokens !== undefined) usage.cached_prompt_tokens = asInteger(message.cachedPromptTokens);
  if (message.requests !== undefined) usage.requests = asInteger(message.requests);
  if (message.abandonedRequests !== undefined) usage.abandoned_requests = asInteger(message.abandonedRequests);
  if (message.costUsd !== undefined) usage.cost_usd = message.costUsd;
  if (message.computeTime) usage.compute_seconds = millisecondsOf(message.computeTime) / 1e3;
  return usage;
}

/** Make a span out of milliseconds. */
export function durationOf(milliseconds: number): Duration {
  if (!Number.isFinite(milliseconds)) throw new RangeError(`${milliseconds} ms is not a span`);
  const seconds = Math.trunc(milliseconds / 1e3);
  const nanos = Math.round((milliseconds - seconds * 1e3) * 1e6);
  const carry = Math.trunc(nanos / 1e9);
  return { seconds: BigInt(seconds + carry), nanos: nanos - carry * 1e9 };
}

/** The milliseconds of a span. */
export function millisecondsOf(span: Duration): number {
  return Number(span.seconds) * 1e3 + span.nanos / 1e6;
}

/**
 * Encode what a system returned. Fields equal to the original's are named, not
 * echoed, and `api_usage` in the OpenAI shape travels as `usage` too.
 */
export function encodeProcessed(
  processed: Map<string, unknown>,
  original: Map<string, unknown>,
): Omit<ProcessResponse, "handlerTime"> {
  const carriedFields: string[] = [];
  const rest: [string, unknown][] = [];
  for (const [name, value] of processed) {
    const isSame = original.has(name) && Object.is(value, original.get(name));
    // User code may have changed a list or an object in place.
    if (isSame && (typeof value !== "object" || value === null || value instanceof Number)) {
      carriedFields.push(name);
    } else {
      rest.push([name, value]);
    }
  }
  const usage = encodeUsage(processed.get("api_usage"));
  return { fields: encodeFields(rest), carriedFields, usage };
}

const ORIGINS: Record<Origin, FailureOrigin> = {
  system: FailureOrigin.FAILURE_ORIGIN_SYSTEM,
  evaluator: FailureOrigin.FAILURE_ORIGIN_EVALUATOR,
  transport: FailureOrigin.FAILURE_ORIGIN_TRANSPORT,
  daemon: FailureOrigin.FAILURE_ORIGIN_DAEMON,
  dataset: FailureOrigin.FAILURE_ORIGIN_DATASET,
  reader: FailureOrigin.FAILURE_ORIGIN_READER,
};

/** Encode a failure; any text, even one with lone surrogates, is made fit for the wire. */
export function encodeFailure(failure: RemoteFailure): Failure {
  return {
    origin: ORIGINS[failure.origin ?? "system"],
    reason: failure.reason.toWellFormed(),
    message: failure.message.toWellFormed(),
    retryable: failure.retryable,
    retryDelay: failure.retryDelayMs === undefined ? undefined : durationOf(failure.retryDelayMs),
    stackTrace: failure.stackTrace.toWellFormed(),
    attempts: failure.attempts,
    field: failure.field.toWellFormed(),
  };
}

/** Decode a failure. */
export function decodeFailure(message: Failure): RemoteFailure {
  const known = Object.entries(ORIGINS).find(([, number]) => number === message.origin);
  return new RemoteFailure(message.message, {
    origin: (known?.[0] ?? "system") as Origin,
    reason: message.reason || "UNSPECIFIED",
    retryable: message.retryable,
    retryDelayMs: message.retryDelay && millisecondsOf(message.retryDelay),
    stackTrace: message.stackTrace,
    attempts: message.attempts,
    field: message.field,
  });
}
