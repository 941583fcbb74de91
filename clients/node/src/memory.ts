/**
 * A user's memory system, with as many scopes as the daemon asks for.
 *
 * The wire has scopes; most objects have one state. There are three ways to
 * bridge that, in this order:
 *
 * - a class, or a function that makes an object, is called once per scope;
 * - methods that all take the call as their last parameter find `scope` in it;
 * - any other object serves one scope at a time, and says so to the second.
 *
 * Within a scope `reset` and `ingest` run alone and queries run side by side,
 * except that an object with one state never has two calls at once.
 */

import { decoded, decodedOptions, encoded, timed } from "./adapters.js";
import type { CurrentCall, MemoryCall } from "./calls.js";
import { declaredOf, type Declared } from "./declared.js";
import { NotServable, RemoteFailure } from "./errors.js";
import { fieldsOf } from "./example.js";
import { Gate } from "./gate.js";
import type {
  IngestRequest,
  IngestResponse,
  QueryRequest,
  QueryResponse,
  ResetRequest,
  ResetResponse,
} from "./gen/cbench/v1/memory.js";
import type { SystemInfo } from "./gen/cbench/v1/system.js";
import type { Adapter } from "./offer.js";
import { asNumber, decodeTurn, durationOf, encodeUsage, type Turn, type Usage } from "./messages.js";
import {
  aboutOf,
  badReturn,
  DEFAULT_CONCURRENCY,
  isClass,
  kindOf,
  offers,
  statedLimit,
  systemName,
  type About,
} from "./about.js";
import { asInteger, encodeFields, inRange, wellFormed } from "./values.js";

type MaybePromise<T> = T | Promise<T>;

/** What `ingest` may return. */
export interface Ingested {
  readonly usage?: Usage;
  /** Bytes the scope now occupies. */
  readonly storedBytes?: number | bigint;
}

/** What `query` may return, instead of the response alone. */
export interface Answered extends Ingested {
  /** The answer. Left out where the system only retrieves. */
  readonly response?: string;
  /** What was retrieved to answer from. */
  readonly context?: string;
  /** Tokens of that context. */
  readonly contextTokens?: number | bigint;
  /** Time spent finding the context, without answering. */
  readonly retrievalMs?: number;
  /** Anything to keep with the row. */
  readonly metadata?: Record<string, unknown>;
}

/** A memory system: is fed turns, then asked about them. */
export interface MemorySystem extends Partial<About> {
  /** Forget everything. */
  reset(call: MemoryCall): MaybePromise<unknown>;
  /** Remember turns, in order. Repeats are taken care of before they get here. */
  ingest(turns: Turn[], call: MemoryCall): MaybePromise<Ingested | undefined | void>;
  /** Answer from what is remembered. */
  query(question: string, call: MemoryCall): MaybePromise<string | Answered>;
}

/** A class of memory systems, or a function that makes them: one object per scope. */
export type MemoryFactory = (new () => MemorySystem) | (() => MemorySystem);

/** What is known of one scope; `system` is undefined until it is first used. */
class Scope {
  readonly gate = new Gate();
  system: MemorySystem | undefined;
  readonly ingested = new Map<string, IngestResponse>();
}

/** A user's memory system. */
export class MemoryAdapter implements Adapter {
  readonly name: string;
  readonly origin = "system";
  readonly limit: number;
  readonly info: SystemInfo;
  readonly answers = {
    reset: this.#reset.bind(this),
    ingest: this.#ingest.bind(this),
    query: this.#query.bind(this),
  };
  readonly #declared: Declared | undefined;
  readonly #make: () => MemorySystem;
  readonly #isFactory: boolean;
  readonly #hasOneState: boolean;
  readonly #scopes = new Map<string, Scope>();

  constructor(offered: MemorySystem | MemoryFactory, maxConcurrency?: number) {
    this.#isFactory = typeof offered === "function";
    this.#make = typeof offered === "function" ? maker(offered) : () => offered;
    const sample = checked(this.#make());
    const about = typeof offered === "function" ? described(sample, offered) : sample;
    this.name = systemName(about);
    this.#hasOneState =
      !this.#isFactory &&
      (sample.reset.length < 1 || sample.ingest.length < 2 || sample.query.length < 2);
    const stated = this.#hasOneState ? 1 : statedLimit(about, maxConcurrency);
    this.limit = stated ?? DEFAULT_CONCURRENCY;
    const words = aboutOf(about);
    this.#declared = declaredOf(`system "${this.name}"`, about);
    const rest = { maxConcurrency: stated, location: "", declaredOptions: this.#declared?.message() };
    this.info = { name: this.name, ...words, capabilities: [], ...rest };
  }

  async #reset(request: ResetRequest, call: CurrentCall): Promise<ResetResponse> {
    call.scope = request.scope;
    call.options = this.#declared?.defaults() ?? {};
    // A scope never used has nothing to forget.
    const isUnknown = !this.#scopes.has(request.scope);
    if (isUnknown && (this.#isFactory || (this.#hasOneState && this.#scopes.size > 0))) return {};
    const scope = this.#known(request.scope);
    try {
      await scope.gate.hold(true, call.signal, async () => {
        await this.#system(scope).reset(call);
        scope.system = undefined;
        scope.ingested.clear();
      });
    } finally {
      if (scope.gate.isIdle && scope.system === undefined) this.#scopes.delete(request.scope);
    }
    return {};
  }

  async #ingest(request: IngestRequest, call: CurrentCall): Promise<IngestResponse> {
    const turns = decoded(() => request.turns.map(decodeTurn));
    call.scope = request.scope;
    call.options = decodedOptions(request.options, this.#declared);
    const scope = this.#scope(request.scope);
    return scope.gate.hold(true, call.signal, async () => {
      const earlier = scope.ingested.get(request.callId);
      if (earlier !== undefined) return earlier;
      const system = this.#system(scope);
      const [returned, handlerTime] = await timed(() => system.ingest(turns, call));
      const parts = fieldsOf(returned) ?? new Map<string, unknown>();
      const response = encoded("ingest()", () => ({
        usage: encodeUsage(parts.get("usage")),
        storedBytes: count(parts, "storedBytes"),
        handlerTime,
      }));
      if (request.callId) scope.ingested.set(request.callId, response);
      return response;
    });
  }

  async #query(request: QueryRequest, call: CurrentCall): Promise<QueryResponse> {
    call.scope = request.scope;
    call.budget = request.budget === undefined ? undefined : asInteger(request.budget);
    call.askedAt = request.askedAt || undefined;
    call.instruction = request.instruction;
    call.options = decodedOptions(request.options, this.#declared);
    const scope = this.#scope(request.scope);
    const [returned, handlerTime] = await scope.gate.hold(this.#hasOneState, call.signal, async () => {
      const system = this.#system(scope);
      return timed(() => system.query(request.question, call));
    });
    return encoded("query()", () => ({ ...encodeAnswer(returned), handlerTime }));
  }

  #scope(name: string): Scope {
    const other = [...this.#scopes.keys()].find((held) => held !== name);
    if (this.#hasOneState && other !== undefined) {
      throw new RemoteFailure(
        `memory system "${this.name}" is one object with one state, which scope "${other}" holds ` +
          "until it is reset. To serve many scopes pass the class instead of an object, or let " +
          "reset, ingest and query all take the call and look at its `scope`.",
        { reason: "FAILED_PRECONDITION" },
      );
    }
    return this.#known(name);
  }

  #known(name: string): Scope {
    const scope = this.#scopes.get(name) ?? new Scope();
    this.#scopes.set(name, scope);
    return scope;
  }

  #system(scope: Scope): MemorySystem {
    scope.system ??= this.#isFactory ? checked(this.#make()) : this.#make();
    return scope.system;
  }
}

function maker(factory: MemoryFactory): () => MemorySystem {
  const isNewable = isClass(factory) || offers(factory.prototype, "query");
  return () => (isNewable ? new (factory as new () => MemorySystem)() : (factory as () => MemorySystem)());
}

function checked(system: MemorySystem): MemorySystem {
  const missing = ["reset", "ingest", "query"].filter((name) => !offers(system, name));
  if (missing.length === 0) return system;
  throw new NotServable(`${kindOf(system)} is not a memory system: it lacks ${missing.join(", ")}.`);
}

/** What an object says of itself, else what its class does. */
function described(sample: MemorySystem, factory: MemoryFactory): Partial<About> {
  const own = factory as unknown as Partial<About>;
  return {
    name: sample.name ?? own.name,
    version: sample.version ?? own.version,
    description: sample.description ?? own.description,
    maxConcurrency: sample.maxConcurrency ?? own.maxConcurrency,
    declaredOptions: sample.declaredOptions ?? own.declaredOptions,
    acceptsOtherOptions: sample.acceptsOtherOptions ?? own.acceptsOtherOptions,
  };
}

function count(parts: Map<string, unknown>, name: string): bigint | undefined {
  const value = parts.get(name);
  const isCount = typeof value === "bigint" || Number.isSafeInteger(value);
  return isCount ? inRange(BigInt(value as bigint | number), [name]) : undefined;
}

function encodeAnswer(returned: unknown): Omit<QueryResponse, "handlerTime"> {
  const parts = typeof returned === "string" ? new Map([["response", returned]]) : fieldsOf(returned);
  const response = parts?.get("response");
  const context = parts?.get("context");
  if (parts === undefined || (typeof response !== "string" && typeof context !== "string")) {
    return badReturn("query()", returned, "text, or an object with a response or a context");
  }
  const retrievalMs = asNumber(parts.get("retrievalMs"));
  return {
    response: typeof response === "string" ? wellFormed(response, ["response"]) : "",
    context: typeof context === "string" ? wellFormed(context, ["context"]) : undefined,
    usage: encodeUsage(parts.get("usage")),
    metadata: encodeFields(fieldsOf(parts.get("metadata")) ?? [], "metadata"),
    contextTokens: count(parts, "contextTokens"),
    storedBytes: count(parts, "storedBytes"),
    retrievalTime: retrievalMs === undefined ? undefined : durationOf(retrievalMs),
  };
}
