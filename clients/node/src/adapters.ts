/** Systems and evaluators of a user, made to answer requests. */

import type { Call, CurrentCall } from "./calls.js";
import { Declared, declaredOf } from "./declared.js";
import { RemoteFailure, Unencodable } from "./errors.js";
import { decodeExample, fieldsOf, type Example } from "./example.js";
import { ScoreDirection } from "./gen/cbench/v1/evaluator.js";
import type { EvaluatorInfo, ScoreRequest, ScoreResponse } from "./gen/cbench/v1/evaluator.js";
import type { Example as ExampleMessage, Value as ValueMessage } from "./gen/cbench/v1/example.js";
import {
  Capability,
  type ProcessConversationRequest,
  type ProcessConversationResponse,
  type ProcessRequest,
  type ProcessResponse,
  type SystemInfo,
} from "./gen/cbench/v1/system.js";
import type { Adapter } from "./offer.js";
import type { Duration } from "./gen/google/protobuf/duration.js";
import { asNumber, decodeTurn, durationOf, encodeProcessed, encodeTurn, type Turn } from "./messages.js";
import {
  aboutOf,
  badReturn,
  DEFAULT_CONCURRENCY,
  evaluatorName,
  offers,
  statedLimit,
  systemName,
  type About,
} from "./about.js";
import { decodeFields, encodeFields, type Fields } from "./values.js";

type MaybePromise<T> = T | Promise<T>;

/** A system: turns one example into another. */
export interface System extends About {
  /** Return the changed example; what is returned is what is scored, whole. */
  process(example: Example, call: Call): MaybePromise<Example | Record<string, unknown>>;
  /** Answer every user turn of a conversation, in order, with turns or texts. */
  processConversation?(
    turns: Turn[],
    call: Call & { readonly example: Example },
  ): MaybePromise<readonly (string | Partial<Turn>)[]>;
}

/** Scores by name; one that does not apply is left out, or null. */
export type Scores = Record<string, number | null>;

/** Scores, and what led to them. */
export interface Assessment {
  readonly scores: Scores;
  /** Why, for a person reading one row. */
  readonly explanation?: string;
  /** What led to the scores, such as the extracted answer. */
  readonly details?: Record<string, unknown>;
}

/** An evaluator: scores what a system made of an example. */
export interface Evaluator extends About {
  /** The scores it gives, with a sentence for each. */
  readonly scores?: Readonly<Record<string, string>>;
  /** Those of its scores of which less is better. */
  readonly lowerIsBetter?: readonly string[];
  /** What a row counts whose system failed, by score. */
  readonly worst?: Readonly<Record<string, number>>;
  /** The fields it reads from the original example. */
  readonly requiredFields?: readonly string[];
  /** Compare a pair. Options are refused unless they are declared, or the method names its third parameter. */
  score(original: Example, processed: Example, call: Call): MaybePromise<Scores | Assessment>;
}

/** A user's system. */
export class SystemAdapter implements Adapter {
  readonly name: string;
  readonly origin = "system";
  readonly limit: number;
  readonly info: SystemInfo;
  readonly answers = {
    process: this.#process.bind(this),
    converse: this.#converse.bind(this),
  };
  readonly #system: System;
  readonly #declared: Declared | undefined;

  constructor(system: System, maxConcurrency?: number) {
    this.#system = system;
    this.name = systemName(system);
    const stated = statedLimit(system, maxConcurrency);
    this.limit = stated ?? DEFAULT_CONCURRENCY;
    const capabilities = [Capability.CAPABILITY_STREAM];
    if (offers(system, "processConversation")) capabilities.push(Capability.CAPABILITY_CONVERSATION);
    const about = aboutOf(system);
    this.#declared = declaredOf(`system "${this.name}"`, system);
    const rest = { maxConcurrency: stated, location: "", declaredOptions: this.#declared?.message() };
    this.info = { name: this.name, ...about, capabilities, ...rest };
  }

  async #process(request: ProcessRequest, call: CurrentCall): Promise<ProcessResponse> {
    const example = decodedExample(request.example);
    call.options = decodedOptions(request.options, this.#declared);
    call.instruction = request.instruction;
    const [returned, handlerTime] = await timed(() => this.#system.process(example, call));
    const processed = fieldsOf(returned) ?? badReturn("process()", returned, "an example");
    const original = new Map(example.entries());
    return encoded("process()", () => ({ ...encodeProcessed(processed, original), handlerTime }));
  }

  async #converse(
    request: ProcessConversationRequest,
    call: CurrentCall,
  ): Promise<ProcessConversationResponse> {
    if (this.#system.processConversation === undefined) {
      throw new RemoteFailure(`system "${this.name}" has no processConversation`, {
        reason: "UNIMPLEMENTED",
      });
    }
    const turns = decoded(() => request.turns.map(decodeTurn));
    const example = decodedExample(request.example);
    call.options = decodedOptions(request.options, this.#declared);
    call.instruction = request.instruction;
    const about = Object.assign(call, { example });
    const talk = this.#system.processConversation.bind(this.#system, turns, about);
    const [returned, handlerTime] = await timed(talk);
    if (!Array.isArray(returned)) badReturn("processConversation()", returned, "an array of turns");
    const replies = encoded("processConversation()", () => returned.map(encodeReply));
    return { replies, usage: undefined, handlerTime };
  }
}

function encodeReply(turn: unknown): ReturnType<typeof encodeTurn> {
  if (typeof turn === "string") return encodeTurn({ role: "assistant", content: turn });
  const fields = fieldsOf(turn) ?? badReturn("processConversation()", turn, "an array of turns");
  return encodeTurn({ role: "assistant", ...Object.fromEntries(fields) });
}

/** A user's evaluator. */
export class EvaluatorAdapter implements Adapter {
  readonly name: string;
  readonly origin = "evaluator";
  readonly limit: number;
  readonly info: EvaluatorInfo;
  readonly answers = { score: this.#score.bind(this) };
  readonly #evaluator: Evaluator;
  readonly #declared: Declared | undefined;

  constructor(evaluator: Evaluator, maxConcurrency?: number) {
    this.#evaluator = evaluator;
    this.name = evaluatorName(evaluator);
    const stated = statedLimit(evaluator, maxConcurrency);
    this.limit = stated ?? DEFAULT_CONCURRENCY;
    const lower = evaluator.lowerIsBetter ?? [];
    const scores = Object.entries(evaluator.scores ?? {}).map(([name, description]) => ({
      name,
      description: String(description),
      higherIsBetter: !lower.includes(name),
      direction: lower.includes(name)
        ? ScoreDirection.SCORE_DIRECTION_LOWER_IS_BETTER
        : ScoreDirection.SCORE_DIRECTION_HIGHER_IS_BETTER,
      worst: evaluator.worst?.[name],
    }));
    const requiredFields = [...(evaluator.requiredFields ?? [])];
    const about = aboutOf(evaluator);
    const owner = `evaluator "${this.name}"`;
    // Who cannot receive options takes none.
    this.#declared = declaredOf(owner, evaluator) ?? (evaluator.score.length < 3 ? new Declared(owner, {}, false) : undefined);
    const rest = { maxConcurrency: stated, location: "", declaredOptions: this.#declared?.message() };
    this.info = { name: this.name, ...about, scores, requiredFields, ...rest };
  }

  async #score(request: ScoreRequest, call: CurrentCall): Promise<ScoreResponse> {
    const original = decodedExample(request.original);
    const processed = decodedExample(request.processed);
    call.options = decodedOptions(request.options, this.#declared);
    const returned: unknown = await this.#evaluator.score(original, processed, call);
    return encoded("score()", () => encodeAssessment(returned));
  }
}

function encodeAssessment(returned: unknown): ScoreResponse {
  const parts = fieldsOf(returned) ?? badReturn("score()", returned, "an object of scores");
  // An assessment has scores; a plain object of scores may name one so too.
  const inner = fieldsOf(parts.get("scores"));
  const scores = new Map<string, number>();
  for (const [name, value] of inner ?? parts) {
    if (value === null || value === undefined) continue;
    const score = typeof value === "boolean" ? Number(value) : asNumber(value);
    scores.set(name, score ?? badReturn(`score()["${name}"]`, value, "a number"));
  }
  if (inner === undefined) return { scores, explanation: "", details: new Map() };
  const given = parts.get("details") ?? {};
  const details = fieldsOf(given) ?? badReturn('score()["details"]', given, "an object");
  const explanation = String(parts.get("explanation") ?? "").toWellFormed();
  return { scores, explanation, details: encodeFields(details) };
}

/** Run user code, and return what it gave with the time that it took. */
export async function timed(work: () => unknown): Promise<[unknown, Duration]> {
  const started = performance.now();
  const returned: unknown = await work();
  return [returned, durationOf(performance.now() - started)];
}

/** Decode, and turn a request that cannot be read into a refusal. */
export function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof Unencodable)) throw error;
    throw new RemoteFailure(error.message, { reason: "INVALID_ARGUMENT" });
  }
}

/** Encode, and turn what cannot be sent back into a failure. */
export function encoded<T>(method: string, encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (!(error instanceof Unencodable || error instanceof RangeError)) throw error;
    throw new RemoteFailure(`what ${method} returned cannot be sent: ${error.message}`, {
      reason: "UNENCODABLE_VALUE",
    });
  }
}

function decodedExample(message: ExampleMessage | undefined): Example {
  return decoded(() => decodeExample(message));
}

/** The options of a call, checked and with defaults where they are declared. */
export function decodedOptions(options: Map<string, ValueMessage>, declared: Declared | undefined): Fields {
  const given = options.size === 0 ? {} : decoded(() => decodeFields(options, "options"));
  return declared === undefined ? given : declared.filled(given);
}
