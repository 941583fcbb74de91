/** A run, followed through lost connections: each stored event once and in order. */

import { setTimeout as pause } from "node:timers/promises";

import type { ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import type { RunEvent as Message } from "./gen/cbench/v1/bench.js";
import { decodeEvent, type RunEvent } from "./runs.js";
import { isStatus } from "./status.js";

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 2_000;

/** A stream of events, reopened after each loss. */
export interface Source {
  /** Open the first stream, for a run that is yet to be named. */
  readonly start?: () => ClientReadableStream<Message[]>;
  /** Open a stream that goes on after a sequence. */
  readonly watch: (runId: string, after: number) => ClientReadableStream<Message[]>;
  /** Whether the run has ended and has no event after a sequence. */
  readonly isOver: (runId: string, after: number) => Promise<boolean>;
  /** Throw unless an error, after so much silence, is worth another try. */
  readonly mayWait: (error: ServiceError, silenceMs: number) => void;
  /** Ends it, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Yield events until the run has ended. Returning early does not stop the run. */
export async function* follow(source: Source, run: string, after: number): AsyncGenerator<RunEvent> {
  let [runId, last, isFinished] = [run, after, false];
  let [alive, delay] = [performance.now(), FIRST_DELAY_MS];
  const { signal } = source;
  for (;;) {
    signal?.throwIfAborted();
    const stream = runId || !source.start ? source.watch(runId, last) : source.start();
    try {
      for await (const batch of stream) {
        for (const message of batch as Message[]) {
          const sequence = Number(message.sequence);
          if (sequence > 0 && sequence <= last) continue;
          if (sequence > 0) {
            last = sequence;
            // A run that is resumed goes on after it has finished.
            isFinished = message.kind?.$case === "finished";
          }
          if (message.kind?.$case === "accepted") runId = message.kind.value.runId;
          delay = FIRST_DELAY_MS;
          const event = decodeEvent(message);
          if (event) yield event;
          signal?.throwIfAborted();
          // Time that the reader takes does not count as silence of the daemon.
          alive = performance.now();
        }
      }
      if (isFinished || (await source.isOver(runId, last))) return;
    } catch (error) {
      signal?.throwIfAborted();
      if (!isStatus(error)) throw error;
      if (isFinished) return;
      source.mayWait(error, performance.now() - alive);
    } finally {
      stream.cancel();
      // Errors of the cancelled stream no longer matter.
      stream.on("error", () => {});
    }
    await pause(delay, undefined, { signal }).catch(() => signal?.throwIfAborted());
    delay = Math.min(delay * 2, MAX_DELAY_MS);
  }
}
