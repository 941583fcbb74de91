/** Attachments: objects offered to a daemon that cannot dial this process, by dialling it. */

import { status } from "@grpc/grpc-js";

import { asBytes, checkToken, headers, openClient, type Connection } from "./channel.js";
import { NotServable, Refused, Unreachable } from "./errors.js";
import type { AttachResponse } from "./gen/cbench/v1/gateway.js";
import { Host, type HostOptions, type Offered } from "./host.js";
import { QUEUE_FACTOR } from "./offer.js";
import { messageOf } from "./about.js";
import { Session } from "./session.js";
import { GRACE_MS, untilSignalled, within } from "./signals.js";
import { isStatus } from "./status.js";

const BACKOFF_MIN_MS = 100;
const BACKOFF_MAX_MS = 10_000;
/** How long a daemon may take to notice that our last connection is dead. */
const STALE_NAME_MS = 30_000;
const MAX_IN_FLIGHT = 256;

const FINAL = new Set<status>([
  status.UNAUTHENTICATED,
  status.PERMISSION_DENIED,
  status.INVALID_ARGUMENT,
  status.UNIMPLEMENTED,
  status.FAILED_PRECONDITION,
]);

/** How to attach. */
export interface AttachOptions extends HostOptions, Connection {
  /** Where the daemon listens; by default `127.0.0.1:50051`. */
  server?: string;
  /** Calls the daemon may have outstanding here at once; by default as many as run. */
  maxInFlight?: number;
}

/** An attachment within a larger program, renewed whenever it breaks. */
export class Attachment {
  /** Where the daemon listens. */
  readonly server: string;
  /** Resolves with the attachment's id at the first welcome; rejects with `Refused`. */
  readonly attached: Promise<string>;
  /** Resolves when the attachment is over; rejects with `Refused` if the daemon wants none of it. */
  readonly ended: Promise<void>;
  readonly #host: Host;
  readonly #options: AttachOptions;
  readonly #limit: number;
  #welcomed: (id: string) => void = () => {};
  #isStopping = false;
  #wake: () => void = () => {};
  #session: Session | undefined;
  #lastSeen: number | undefined;
  #failures = 0;

  /** Starts to dial at once, and keeps at it. Throws `NotServable` for what cannot work. */
  constructor(offered: Offered | readonly Offered[], options: AttachOptions = {}) {
    this.server = options.server ?? "127.0.0.1:50051";
    checkToken(this.server, options);
    this.#options = options;
    this.#host = new Host(offered, options);
    this.#limit = inFlight(this.#host.totalLimit, options.maxInFlight);
    const welcome = new Promise<string>((resolve) => (this.#welcomed = resolve));
    this.ended = this.#keepAttached();
    this.attached = Promise.race([
      welcome,
      this.ended.then(() => {
        throw new Unreachable(`never attached to ${this.server}`);
      }),
    ]);
    // A caller that awaits one of the two need not watch the other.
    this.attached.catch(() => {});
    this.ended.catch(() => {});
  }

  /** The names of all that is offered. */
  get names(): string[] {
    return this.#host.names;
  }

  /** Take no more calls, finish those in progress within the grace, and end. */
  async stop({ graceMs = GRACE_MS }: { graceMs?: number } = {}): Promise<void> {
    this.#isStopping = true;
    this.#session?.drain();
    this.#wake();
    await within(graceMs, this.ended.catch(() => {}));
    this.#session?.abandon();
  }

  /** Stop at the end of a block that begins with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #keepAttached(): Promise<void> {
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
        `${this.server} refused the attachment of ${this.names.join(", ")}: ${details}`,
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
    console.error(`attached ${this.names.join(", ")} to ${this.server}`);
    this.#welcomed(message.welcome.attachmentId);
  }
}

/** Never more than run and wait here, or the daemon would be refused. */
function inFlight(totalLimit: number, asked: number | undefined): number {
  if (asked !== undefined && !(Number.isSafeInteger(asked) && asked >= 1)) {
    throw new NotServable(`maxInFlight is ${asked}; it must be a whole number from 1.`);
  }
  const most = totalLimit * (1 + QUEUE_FACTOR);
  return Math.min(asked ?? Math.min(totalLimit, MAX_IN_FLIGHT), most);
}

/**
 * Attach until SIGINT or SIGTERM, then finish the calls in progress and return.
 *
 * A broken connection is renewed for as long as it takes. Throws `Refused`
 * if the daemon refuses it.
 */
export async function attach(
  offered: Offered | readonly Offered[],
  options: AttachOptions = {},
): Promise<void> {
  const attachment = new Attachment(offered, options);
  let stopping: Promise<void> | undefined;
  const end = (): void => {
    stopping = attachment.stop();
  };
  await untilSignalled(end, attachment.ended);
  await stopping;
}
