// What happened under each key, and the piece of user code that waits to be released.

import { once } from "node:events";

const probes = new Map();

/** What happened under one key. */
class Probe extends EventTarget {
  started = 0;
  running = 0;
  most = 0;
  ended = 0;
  cancelled = 0;
  #isReleased = false;

  release() {
    this.#isReleased = true;
    this.dispatchEvent(new Event("released"));
  }

  async released(signal) {
    if (!this.#isReleased) await once(this, "released", { signal });
  }
}

export function probe(key) {
  if (!probes.has(key)) probes.set(key, new Probe());
  return probes.get(key);
}

/** Wait until the key is released, or the time is up, or the caller has given up. */
export async function hold(key, signal, milliseconds = 60_000) {
  const seen = probe(key);
  seen.started += 1;
  seen.running += 1;
  seen.most = Math.max(seen.most, seen.running);
  const elapsed = new AbortController();
  const timer = setTimeout(() => elapsed.abort(), Number(milliseconds));
  try {
    await seen.released(AbortSignal.any([signal, elapsed.signal]));
    return "released";
  } catch (error) {
    if (signal.aborted) seen.cancelled += 1;
    else if (elapsed.signal.aborted) return "elapsed";
    throw error;
  } finally {
    clearTimeout(timer);
    seen.running -= 1;
    seen.ended += 1;
  }
}

/** Break in a function whose name the stack trace must show. */
export function conformancePanic(message) {
  throw new TypeError(message);
}
