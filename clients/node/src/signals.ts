/** Signals that end a process which serves, and the only things that end it. */

import { inspect } from "node:util";

/** How long calls in progress have to finish. */
export const GRACE_MS = 20_000;

const NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;

/**
 * Run `work` while the first SIGINT or SIGTERM calls `end`, and the second exits at once.
 *
 * Meanwhile an error that user code throws outside of any call, such as in a
 * timer, is printed and does not end the process: other calls are in progress.
 */
export async function untilSignalled(end: () => void, work: Promise<void>): Promise<void> {
  let seen = false;
  const onSignal = (name: keyof typeof NUMBERS): void => {
    if (seen) process.exit(128 + NUMBERS[name]);
    seen = true;
    console.error("finishing the calls in progress; once more to stop at once");
    end();
  };
  const onStray = (error: unknown): void => {
    console.error("thrown outside of any call:", inspect(error));
  };
  process.on("SIGINT", onSignal).on("SIGTERM", onSignal);
  process.on("uncaughtException", onStray).on("unhandledRejection", onStray);
  try {
    await work;
  } finally {
    process.off("SIGINT", onSignal).off("SIGTERM", onSignal);
    process.off("uncaughtException", onStray).off("unhandledRejection", onStray);
  }
}

/** Wait for `work`, but no longer than `milliseconds`; tells whether it is done. */
export async function within(milliseconds: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => { resolve(false); }, milliseconds);
  });
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
