/** A first-come lock that readers share and writers do not. */

interface Waiter {
  readonly exclusive: boolean;
  readonly enter: () => void;
}

/** Lets in many shared holders or one exclusive holder, in order of arrival. */
export class Gate {
  #inside = 0;
  #isExclusive = false;
  #waiting: Waiter[] = [];

  /** Whether no call is inside or waiting. */
  get isIdle(): boolean {
    return this.#inside === 0 && this.#waiting.length === 0;
  }

  /**
   * Wait for a place, keep it while `work` runs, and return what it gives.
   *
   * Throws the signal's reason if it is aborted while waiting.
   */
  async hold<T>(exclusive: boolean, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#place(exclusive, signal);
    try {
      return await work();
    } finally {
      this.#inside -= 1;
      this.#admit();
    }
  }

  #place(exclusive: boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
        this.#admit();
        reject(signal.reason as Error);
      };
      const enter = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const waiter = { exclusive, enter };
      signal.throwIfAborted();
      signal.addEventListener("abort", leave);
      this.#waiting.push(waiter);
      this.#admit();
    });
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#inside > 0 && (next.exclusive || this.#isExclusive)) return;
      this.#waiting.shift();
      this.#inside += 1;
      this.#isExclusive = next.exclusive;
      next.enter();
    }
  }
}
