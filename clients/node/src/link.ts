/** The link of an attachment to one daemon, renewed whenever it breaks. */

import { status } from "@grpc/grpc-js";

import { messageOf } from "./about.js";
import { asBytes, headers, openClient, type Connection } from "./channel.js";
import { Refused } from "./errors.js";
import type { AttachResponse } from "./gen/cbench/v1/gateway.js";
import type { Host } from "./host.js";
import { Session } from "./session.js";
import { within } from "./signals.js";
import { isStatus } from "./status.js";

const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 10_000;
/** How long a daemon may take to notice that our last connection is dead. */
const STALE_NAME_MS = 30_000;

const FINAL = new Set<status>([
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
  status.INVALID_ARGUMENT,
  status.UNIMPLEMENTED,
  status.FAILED_PRECONDITION,
]);

/** Offers what a host has to one daemon. */
export class Link {
  readonly server: string;
  readonly #host: Host;
  readonly #options: Connection;
  readonly #limit: number;
  readonly #welcomed: (id: string) => void;
  #isStopping = false;
  #wake: () => void = () => {};
  #session: Session | undefined;
  #lastSeen: number | undefined;
  #failures = 0;

  constructor(host: Host, server: string, options: Connection, limit: number, welcomed: (id: string) => void) {
    this.server = server;
    this.#host = host;
    this.#options = options;
    this.#limit = limit;
    this.#welcomed = welcomed;
  }

  /** Take no more calls; it ends when those in progress have. */
  drain(): void {
    this.#isStopping = true;
    this.#session?.drain();
    this.#wake();
  }

  /** Give up the calls in progress. */
  abandon(): void {
    this.#session?.abandon();
  }

  /** Stay attached until it is stopped; throw `Refused` if the daemon will not have it. */
  async keep(): Promise<void> {
    for (;;) {
      try {
        await this.#attachOnce();
      } catch (error) {
        this.#judge(error);
      }
      if (this.#isStopping) return;
      // Full jitter, so that many processes do not come back in step.
      const longest = Math.min(BACKOFF_MAX_MS, BACKOFF_MIN_MS * 2 ** this.#failures);
      this.#failures = Math.min(this.#failures + 1, 10);
      const delay = BACKOFF_MIN_MS / 2 + Math.random() * (longest - BACKOFF_MIN_MS / 2);
      await within(delay, new Promise<void>((resolve) => (this.#wake = resolve)));
    }
  }

  async #attachOnce(): Promise<void> {
    const client = openClient(this.server, this.#options);
    try {
      const metadata = headers(this.#options);
      const path = "/cbench.v1.Gateway/Attach";
      const stream = client.makeBidiStreamRequest<Buffer, Buffer>(path, asBytes, asBytes, metadata);
      this.#session = new Session(this.#host, stream, this.#limit, (message) => { this.#heard(message); });
      if (this.#isStopping) this.#session.drain();
      await this.#session.run();
    } finally {
      this.#session = undefined;
      client.close();
    }
  }

  /** Throw `Refused` if trying again cannot help, else say what happened. */
  #judge(error: unknown): void {
    if (error instanceof Refused) throw error;
    const code = isStatus(error) ? error.code : status.UNAVAILABLE;
    const details = isStatus(error) ? error.details : messageOf(error);
    const isOurs =
      this.#lastSeen !== undefined && performance.now() - this.#lastSeen <= STALE_NAME_MS;
    if (FINAL.has(code) || (code === status.ALREADY_EXISTS && !isOurs)) {
      throw new Refused(
        `${this.server} refused the attachment of ${this.#host.names.join(", ")}: ${details}`,
        status[code],
      );
    }
    if ((this.#failures === 0 || this.#failures === 10) && !this.#isStopping) {
      console.error(`not attached to ${this.server}, trying again: ${details}`);
    }
  }

  #heard(message: AttachResponse): void {
    this.#lastSeen = performance.now();
    if (message.welcome === undefined) return;
    this.#failures = 0;
    console.error(`attached ${this.#host.names.join(", ")} to ${this.server}`);
    this.#welcomed(message.welcome.attachmentId);
  }
}
