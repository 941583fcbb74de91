/**
 * A user's objects, held by name and called within their limits.
 *
 * What `serve` and `attach` share: both take calls off a wire, hand them to a
 * `Host`, and put the outcomes back.
 */

import { createRequire } from "node:module";

import { EvaluatorAdapter, SystemAdapter, type Evaluator, type System } from "./adapters.js";
import { Job, type CurrentCall, type Done, type Kind } from "./calls.js";
import { NotServable, RemoteFailure } from "./errors.js";
import type { EvaluatorDescribeResponse } from "./gen/cbench/v1/evaluator.js";
import type { Hello } from "./gen/cbench/v1/gateway.js";
import type { MemorySystemDescribeResponse } from "./gen/cbench/v1/memory.js";
import type { SystemDescribeResponse } from "./gen/cbench/v1/system.js";
import { Offer, type Adapter } from "./offer.js";
import { MemoryAdapter, type MemoryFactory, type MemorySystem } from "./memory.js";
import { isClass, kindOf, offers } from "./about.js";

const { version } = createRequire(import.meta.url)("../package.json") as { version: string };
const SDK = `cbench-node/${version}`;

/** Anything that can be served; a function is a system named like the function. */
export type Offered = System | System["process"] | MemorySystem | MemoryFactory | Evaluator;

/** What both `serve` and `attach` take. */
export interface HostOptions {
  /** Memory systems; needed only for functions that make them. */
  memorySystems?: readonly (MemorySystem | MemoryFactory)[];
  /** Evaluators; the same as listing them with the systems. */
  evaluators?: readonly Evaluator[];
  /** Calls in progress at once, for each object that does not state its own. */
  maxConcurrency?: number;
}

/** The objects offered. Names are unique among systems, memory systems and evaluators each. */
export class Host {
  isDraining = false;
  readonly #systems: SystemAdapter[];
  readonly #memories: MemoryAdapter[];
  readonly #evaluators: EvaluatorAdapter[];
  readonly #offers: Record<Kind, Map<string, Offer>>;

  constructor(offered: Offered | readonly Offered[], options: HostOptions = {}) {
    const limit = options.maxConcurrency;
    const sorted = sort(Array.isArray(offered) ? offered : [offered]);
    const memories = [...sorted.memories, ...(options.memorySystems ?? [])];
    const evaluators = [...sorted.evaluators, ...(options.evaluators ?? [])];
    this.#systems = sorted.systems.map((item) => new SystemAdapter(item, limit));
    this.#memories = memories.map((item) => new MemoryAdapter(item, limit));
    this.#evaluators = evaluators.map((item) => new EvaluatorAdapter(item, limit));
    const system = byName(this.#systems, "system");
    const memory = byName(this.#memories, "memory system");
    const score = byName(this.#evaluators, "evaluator");
    this.#offers = {
      process: system,
      converse: system,
      reset: memory,
      ingest: memory,
      query: memory,
      score,
    };
    if (this.#all.length === 0) {
      throw new NotServable("there is nothing to serve; pass at least one system or evaluator.");
    }
  }

  get #all(): Adapter[] {
    return [...this.#systems, ...this.#memories, ...this.#evaluators];
  }

  /** How many calls may run at once over all that is offered. */
  get totalLimit(): number {
    return this.#all.reduce((sum, item) => sum + item.limit, 0);
  }

  /** The names of all that is offered. */
  get names(): string[] {
    return this.#all.map((item) => item.name);
  }

  describeSystems(): SystemDescribeResponse {
    return { systems: this.#systems.map((item) => item.info), sdk: SDK };
  }

  describeMemory(): MemorySystemDescribeResponse {
    return { systems: this.#memories.map((item) => item.info), sdk: SDK };
  }

  describeEvaluators(): EvaluatorDescribeResponse {
    return { evaluators: this.#evaluators.map((item) => item.info), sdk: SDK };
  }

  /** Say the same to a daemon dialled by `attach`. */
  hello(maxInFlight: number): Hello {
    return {
      systems: this.describeSystems().systems,
      memorySystems: this.describeMemory().systems,
      evaluators: this.describeEvaluators().evaluators,
      sdk: SDK,
      maxInFlight,
    };
  }

  /** Return whom a request is for. Throws `RemoteFailure` if that is unclear. */
  find(kind: Kind, request: { system?: string; evaluator?: string }): Offer {
    const known = this.#offers[kind];
    const noun = kind === "score" ? "evaluator" : "system";
    const name = request[noun] ?? "";
    const offer = known.get(name) ?? (name === "" && known.size === 1 ? [...known.values()][0] : undefined);
    if (offer !== undefined) return offer;
    const served = [...known.keys()].join(", ") || "none";
    if (name === "" && known.size > 0) {
      throw new RemoteFailure(`several are served here; name the ${noun}. Served: ${served}`, {
        origin: noun,
        reason: "INVALID_ARGUMENT",
      });
    }
    throw new RemoteFailure(`no ${noun} "${name}" is served here. Served: ${served}`, {
      origin: noun,
      reason: `UNKNOWN_${noun.toUpperCase()}`,
    });
  }

  /** Start one call. Throws `RemoteFailure` for one that is refused. */
  submit(kind: Kind, request: object, call: CurrentCall, onDone: Done): Job {
    if (this.isDraining) throw shuttingDown();
    const job = new Job(kind, request, call, onDone);
    this.find(kind, request).submit(job);
    return job;
  }
}

/** The failure of a call that comes too late. */
export function shuttingDown(): RemoteFailure {
  return new RemoteFailure("shutting down", { reason: "UNAVAILABLE", retryable: true });
}

function byName(adapters: readonly Adapter[], noun: string): Map<string, Offer> {
  const known = new Map<string, Offer>();
  for (const adapter of adapters) {
    if (known.has(adapter.name)) {
      throw new NotServable(`two ${noun}s are called "${adapter.name}"; names must differ.`);
    }
    known.set(adapter.name, new Offer(adapter));
  }
  return known;
}

/** Tell objects apart by their methods. */
function sort(offered: readonly Offered[]) {
  const systems: System[] = [];
  const memories: (MemorySystem | MemoryFactory)[] = [];
  const evaluators: Evaluator[] = [];
  for (const item of offered) {
    const methods: unknown = typeof item === "function" ? item.prototype : item;
    if (offers(methods, "ingest") && offers(methods, "query")) {
      memories.push(item as MemorySystem | MemoryFactory);
    } else if (isClass(item)) {
      const name = (item as { name: string }).name;
      throw new NotServable(`${name} is a class; pass an object: new ${name}().`);
    } else if (offers(item, "process")) {
      systems.push(item as System);
    } else if (offers(item, "score")) {
      evaluators.push(item as Evaluator);
    } else if (typeof item === "function") {
      systems.push({ name: item.name, process: item as System["process"] });
    } else {
      throw new NotServable(
        `${kindOf(item)} cannot be served: it has neither process, nor ingest and query, nor score.`,
      );
    }
  }
  return { systems, memories, evaluators };
}
