/** One call to a user's object, from its acceptance to its one outcome. */

import { RemoteFailure, type Origin } from "./errors.js";
import type { Fields } from "./values.js";

/** The kinds of work, named as in `gateway.proto`. */
export type Kind = "process" | "converse" | "score" | "reset" | "ingest" | "query";

/** Options by name, as a run sets them; undefined where it does not. */
export type Settings = Readonly<Record<string, unknown>>;

/** What user code may know about the call it is answering. */
export interface Call<Options = Settings> {
  /** The same for every retry of this call. */
  readonly callId: string;
  /** The settings of this run, such as a target rate; see `OptionsOf` for their types. */
  readonly options: Options;
  /**
   * What the dataset asks of whoever answers: the task, its labels and the form of an answer.
   * May be empty, and counts in no token ratio.
   */
  readonly instruction: string;
  /** The W3C trace context of the call, for spans of your own; undefined means that nobody traces it. */
  readonly traceparent: string | undefined;
  /** What vendors add to `traceparent`; undefined means nothing. */
  readonly tracestate: string | undefined;
  /** Aborted when the caller no longer waits for the answer: cancelled, or overdue. */
  readonly signal: AbortSignal;
  /** Milliseconds left, not below zero; undefined means no limit. */
  readonly remainingMs: number | undefined;
}

/** What a memory system may know about the call it is answering. */
export interface MemoryCall<Options = Settings> extends Call<Options> {
  /** Which memory is meant; scopes do not see each other. */
  readonly scope: string;
  /** For `query`: the most tokens to hand to a model; undefined means no limit. */
  readonly budget: number | bigint | undefined;
  /** For `query`: when the question is asked; undefined means unknown. */
  readonly askedAt: string | undefined;
}

/** A `MemoryCall`, of which `scope`, `budget` and `askedAt` are set for memory systems alone. */
export class CurrentCall implements MemoryCall {
  readonly callId: string;
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  options: Fields = {};
  instruction = "";
  scope = "";
  budget: number | bigint | undefined;
  askedAt: string | undefined;
  readonly #deadline: number | undefined;
  #controller: AbortController | undefined;
  #abandoned: RemoteFailure | undefined;

  constructor(callId: string, timeoutMs: number | undefined, traceparent = "", tracestate = "") {
    this.callId = callId;
    this.traceparent = traceparent || undefined;
    this.tracestate = tracestate || undefined;
    this.#deadline = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  }

  get signal(): AbortSignal {
    // Made when first asked for: most calls never look, and it is not free.
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#abandoned) this.#controller.abort(this.#abandoned);
    }
    return this.#controller.signal;
  }

  get remainingMs(): number | undefined {
    return this.#deadline === undefined ? undefined : Math.max(0, this.#deadline - performance.now());
  }

  /** Why the caller no longer waits, if so. */
  get abandoned(): RemoteFailure | undefined {
    return this.#abandoned;
  }

  abandon(why: RemoteFailure): void {
    this.#abandoned ??= why;
    this.#controller?.abort(why);
  }
}

/** Gets the reply or the failure of a call, once. */
export type Done = (job: Job, outcome: unknown) => void;

/** The longest that `setTimeout` can wait; beyond it would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * A call being answered; `onDone` is called once, with the reply or a `RemoteFailure`.
 *
 * The outcome and the end of the user's code are two things: a cancelled or
 * overdue call has its outcome at once, while its code may run on.
 */
export class Job {
  readonly kind: Kind;
  readonly request: unknown;
  readonly call: CurrentCall;
  readonly #onDone: Done;
  #origin: Origin | undefined;
  #forget: ((job: Job) => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isSettled = false;

  constructor(kind: Kind, request: unknown, call: CurrentCall, onDone: Done) {
    this.kind = kind;
    this.request = request;
    this.call = call;
    this.#onDone = onDone;
  }

  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Take the call on: give up when its time is over, and call `forget` once it has an outcome. */
  accept(origin: Origin, forget: (job: Job) => void): void {
    this.#origin = origin;
    this.#forget = forget;
    const remaining = this.call.remainingMs;
    if (remaining === undefined || remaining > LONGEST_TIMER_MS) return;
    this.#timer = setTimeout(() => {
      this.#abandon("no answer within the time the caller gave", "DEADLINE_EXCEEDED");
    }, remaining);
  }

  /** Give the outcome, unless there is one already. */
  settle(outcome: unknown): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#forget?.(this);
    this.#onDone(this, outcome);
  }

  /** Give up the call because the caller no longer waits for it. */
  cancel(): void {
    this.#abandon("the caller gave up", "CANCELLED");
  }

  #abandon(message: string, reason: string): void {
    if (this.#isSettled) return;
    const failure = new RemoteFailure(message, { origin: this.#origin, reason });
    this.settle(failure);
    this.call.abandon(failure);
  }
}
