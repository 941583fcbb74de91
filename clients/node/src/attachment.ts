/** Attachments: objects offered to a daemon that cannot dial this process, by dialling it. */

import { addressesOf, checkToken, type Connection } from "./channel.js";
import { NotServable, Unreachable } from "./errors.js";
import { Host, type HostOptions, type Offered } from "./host.js";
import { Link } from "./link.js";
import { QUEUE_FACTOR } from "./offer.js";
import { GRACE_MS, untilSignalled, within } from "./signals.js";

const MAX_IN_FLIGHT = 256;

/** How to attach. */
export interface AttachOptions extends HostOptions, Connection {
  /**
   * Where the daemon listens; by default `127.0.0.1:50051`. Several daemons of one store are
   * named with commas, `host:a,host:b`: it is attached to all of them.
   */
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
  readonly #links: readonly Link[];

  /** Starts to dial at once, and keeps at it. Throws `NotServable` for what cannot work. */
  constructor(offered: Offered | readonly Offered[], options: AttachOptions = {}) {
    this.server = options.server ?? "127.0.0.1:50051";
    const servers = addressesOf(this.server);
    for (const server of servers) checkToken(server, options);
    const host = (this.#host = new Host(offered, options));
    const limit = inFlight(host.totalLimit, options.maxInFlight, servers.length);
    let welcomed: (id: string) => void = () => {};
    const welcome = new Promise<string>((resolve) => (welcomed = resolve));
    this.#links = servers.map((server) => new Link(host, server, options, limit, welcomed));
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
    for (const link of this.#links) link.drain();
    await within(graceMs, this.ended.catch(() => {}));
    for (const link of this.#links) link.abandon();
  }

  /** Stop at the end of a block that begins with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** Stay attached to every daemon; one that refuses for good ends it all. */
  async #keepAttached(): Promise<void> {
    const kept = this.#links.map((link) => link.keep());
    try {
      await Promise.all(kept);
    } catch (refusal) {
      for (const link of this.#links) {
        link.drain();
        link.abandon();
      }
      await Promise.allSettled(kept);
      throw refusal;
    }
  }
}

/** Never more than run and wait here, or the daemon would be refused. */
function inFlight(totalLimit: number, asked: number | undefined, daemons: number): number {
  if (asked !== undefined && !(Number.isSafeInteger(asked) && asked >= 1)) {
    throw new NotServable(`maxInFlight is ${asked}; it must be a whole number from 1.`);
  }
  const most = Math.max(1, Math.floor((totalLimit * (1 + QUEUE_FACTOR)) / daemons));
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
