/**
 * Calls that came over one stream, and their outcomes on the way back over it.
 *
 * Outcomes are serialised one by one and joined as bytes, which is what
 * protobuf does with a repeated field anyway: a message takes what is ready
 * without ever waiting for more.
 *
 * A stream that brings more calls than its system can queue is not read on, so
 * HTTP/2 holds back the sender. Since a cancellation may be stuck behind those
 * calls, reading resumes after a second even so, and calls that still find no
 * room are refused as retryable.
 */

import type { Writable } from "node:stream";

import { CurrentCall, type Job, type Kind } from "./calls.js";
import { MAX_MESSAGE_BYTES } from "./channel.js";
import { RemoteFailure } from "./errors.js";
import type { Duration } from "./gen/google/protobuf/duration.js";
import type { Host } from "./host.js";
import { millisecondsOf } from "./messages.js";

const BATCH_BYTES = 1_000_000;
/** What may wait to be written before no more is read from the same peer. */
const BACKLOG_BYTES = 16 * BATCH_BYTES;
const ROOM_WAIT_MS = 1_000;
const FRAME_BYTES = 64;

/** A call as it came: what it is, and how long it has. */
export interface Asked {
  readonly kind: Kind;
  readonly request: object;
  readonly callId: string;
  readonly timeout: Duration | undefined;
  readonly traceparent: string;
  readonly tracestate: string;
}

/** Encodes the outcome of one call: a response of `kind`, or a `RemoteFailure`. */
export type EncodeOutcome = (callId: string, kind: Kind, outcome: unknown) => Uint8Array;

/** The calls of one stream. `fieldNumber` is where the message written holds its outcomes. */
export class Lane {
  readonly #host: Host;
  readonly #encode: EncodeOutcome;
  readonly #tag: number;
  readonly #stream: Writable;
  readonly #held = new Set<Job>();
  readonly #byId = new Map<string, Job>();
  #ready: Uint8Array[] = [];
  #readyBytes = 0;
  #isClosed = false;
  #news: (() => void) | undefined;
  #written: (() => void) | undefined;

  constructor(host: Host, stream: Writable, fieldNumber: number, encode: EncodeOutcome) {
    this.#host = host;
    this.#stream = stream;
    this.#tag = (fieldNumber << 3) | 2;
    this.#encode = encode;
  }

  /** How many calls have no outcome yet. */
  get held(): number {
    return this.#held.size;
  }

  /**
   * Start a call. False means there is no room for it and `mayWait` asked to
   * be told; every other refusal is the outcome.
   */
  start(asked: Asked, mayWait = false): boolean {
    const { kind, request, callId, timeout, traceparent, tracestate } = asked;
    const call = new CurrentCall(callId, timeout && millisecondsOf(timeout), traceparent, tracestate);
    try {
      const job = this.#host.submit(kind, request, call, this.#done);
      this.#held.add(job);
      if (callId) this.#byId.set(callId, job);
    } catch (error) {
      if (!(error instanceof RemoteFailure)) throw error;
      if (mayWait && error.reason === "RESOURCE_EXHAUSTED") return false;
      this.fail(asked, error);
    }
    return true;
  }

  /** Start calls in order, waiting for room; if no room comes, the rest gets none. */
  async startAll(calls: readonly Asked[]): Promise<void> {
    let hasRoom = true;
    for (const asked of calls) {
      if (this.start(asked, hasRoom)) continue;
      hasRoom = await this.#host.find(asked.kind, asked.request).room(ROOM_WAIT_MS);
      this.start(asked);
    }
  }

  /** Wait while the peer does not read what it asked for. */
  async backlogWritten(): Promise<void> {
    while (this.#readyBytes > BACKLOG_BYTES && !this.#stream.destroyed) {
      await new Promise<void>((resolve) => (this.#written = resolve));
    }
  }

  /** Give up a call; it gets no outcome. An unknown one is ignored. */
  cancel(callId: string): void {
    const job = this.#byId.get(callId);
    if (job === undefined) return;
    this.#byId.delete(callId);
    this.#held.delete(job);
    job.cancel();
    this.#news?.();
  }

  /** Queue an outcome for a call without a result. */
  fail(asked: Pick<Asked, "callId" | "kind">, failure: RemoteFailure): void {
    this.#put(this.#encode(asked.callId, asked.kind, failure));
  }

  /** Queue other parts of the message written, after the outcomes queued so far. */
  putMessage(data: Uint8Array): void {
    this.#ready.push(data);
    this.#readyBytes += data.length;
    this.#news?.();
  }

  /** Take no more calls: `send` returns when those held are answered. */
  close(): void {
    this.#isClosed = true;
    this.#news?.();
  }

  /** Give up every call, because the peer is gone. */
  abandon(): void {
    const held = [...this.#held];
    this.#held.clear();
    this.#byId.clear();
    for (const job of held) job.cancel();
    this.#written?.();
    this.close();
  }

  /** Write outcomes as they become ready, until closed and done. */
  async send(): Promise<void> {
    while (!this.#stream.destroyed) {
      if (this.#ready.length > 0) {
        const batch = this.#nextBatch();
        await new Promise<void>((resolve) => this.#stream.write(batch, () => { resolve(); }));
        this.#written?.();
      } else if (this.#isClosed && this.#held.size === 0) {
        return;
      } else {
        await new Promise<void>((resolve) => (this.#news = resolve));
        this.#news = undefined;
      }
    }
  }

  #nextBatch(): Buffer {
    let count = 0;
    let size = 0;
    for (const part of this.#ready) {
      if (count > 0 && size + part.length > BATCH_BYTES) break;
      count += 1;
      size += part.length;
    }
    const batch = Buffer.concat(this.#ready.slice(0, count), size);
    this.#ready = this.#ready.slice(count);
    this.#readyBytes -= size;
    return batch;
  }

  readonly #done = (job: Job, outcome: unknown): void => {
    if (!this.#held.delete(job)) return;
    const { callId } = job.call;
    if (this.#byId.get(callId) === job) this.#byId.delete(callId);
    const data = this.#encode(callId, job.kind, outcome);
    const failure = tooLarge(data);
    this.#put(failure === undefined ? data : this.#encode(callId, job.kind, failure));
  };

  #put(data: Uint8Array): void {
    const head = [this.#tag];
    let rest = data.length;
    for (; rest >= 0x80; rest = Math.floor(rest / 128)) head.push((rest % 128) | 0x80);
    head.push(rest);
    this.putMessage(Buffer.concat([Uint8Array.from(head), data]));
  }
}

/** Say that no message can hold a result, if so. */
export function tooLarge(data: Uint8Array): RemoteFailure | undefined {
  if (data.length <= MAX_MESSAGE_BYTES - FRAME_BYTES) return undefined;
  const [size, most] = [data.length, MAX_MESSAGE_BYTES].map((count) => count.toLocaleString("en"));
  return new RemoteFailure(`the result has ${size} bytes, and a message holds ${most}`, {
    reason: "RESULT_TOO_LARGE",
  });
}
