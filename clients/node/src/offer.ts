/** An offer: one served object with its limits, the calls at once and those that wait. */

import { RemoteFailure, type Origin } from "./errors.js";
import type { CurrentCall, Job, Kind } from "./calls.js";
import { failureOf } from "./about.js";

/** Calls that may wait, as a multiple of those that may run. */
export const QUEUE_FACTOR = 4;

/** Answers one kind of request with its response. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the kind decides which request it is
export type Answer = (request: any, call: CurrentCall) => Promise<unknown>;

/** A user's object, ready to answer. */
export interface Adapter {
  readonly name: string;
  readonly origin: Origin;
  readonly limit: number;
  readonly answers: Partial<Record<Kind, Answer>>;
}

/** One served object: runs up to its limit at once, and queues a bounded number more. */
export class Offer {
  readonly #adapter: Adapter;
  readonly #bound: number;
  readonly #jobs = new Map<string, Job>();
  readonly #waiting = new Set<Job>();
  readonly #forRoom = new Set<() => void>();
  #running = 0;

  constructor(adapter: Adapter) {
    this.#adapter = adapter;
    this.#bound = adapter.limit * QUEUE_FACTOR;
  }

  get origin(): Origin {
    return this.#adapter.origin;
  }

  /** Whether one more call would be refused. */
  get isFull(): boolean {
    return this.#running >= this.#adapter.limit && this.#waiting.size >= this.#bound;
  }

  /** Start or queue a call. Throws `RemoteFailure` for one that is refused. */
  submit(job: Job): void {
    const { name, limit, origin } = this.#adapter;
    const { callId } = job.call;
    if (callId && this.#jobs.has(callId)) {
      throw new RemoteFailure(`call "${callId}" is still in flight`, { origin, reason: "ALREADY_EXISTS" });
    }
    if (this.isFull) {
      throw new RemoteFailure(
        `"${name}" runs ${limit} calls at once and has ${this.#bound} more waiting. ` +
          "Send fewer, or try again later.",
        { origin, reason: "RESOURCE_EXHAUSTED", retryable: true },
      );
    }
    if (callId) this.#jobs.set(callId, job);
    job.accept(origin, this.#forget);
    if (this.#running < limit) {
      void this.#run(job);
    } else {
      this.#waiting.add(job);
    }
  }

  /** Wait until there is room, but no longer than `milliseconds`; tells whether there is. */
  async room(milliseconds: number): Promise<boolean> {
    const end = performance.now() + milliseconds;
    while (this.isFull && performance.now() < end) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer);
          this.#forRoom.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, end - performance.now());
        this.#forRoom.add(wake);
      });
    }
    return !this.isFull;
  }

  async #run(job: Job): Promise<void> {
    this.#running += 1;
    let outcome: unknown;
    try {
      outcome = await this.#adapter.answers[job.kind]?.(job.request, job.call);
    } catch (error) {
      outcome = failureOf(error, this.#adapter.origin);
    }
    this.#running -= 1;
    this.#startNext();
    job.settle(outcome);
  }

  #startNext(): void {
    for (const job of this.#waiting) {
      if (this.#running >= this.#adapter.limit) break;
      this.#waiting.delete(job);
      void this.#run(job);
    }
    this.#tellRoom();
  }

  #tellRoom(): void {
    if (!this.isFull) for (const wake of this.#forRoom) wake();
  }

  readonly #forget = (job: Job): void => {
    this.#jobs.delete(job.call.callId);
    if (this.#waiting.delete(job)) this.#tellRoom();
  };
}
