/** Servers: JavaScript objects served over gRPC, in one line. */

import { createHash, timingSafeEqual } from "node:crypto";
import { existsSync, unlinkSync, writeSync } from "node:fs";
import { connect } from "node:net";
import { createSecureContext } from "node:tls";

import {
  Server as GrpcServer,
  ServerCredentials,
  ServerInterceptingCall,
  status,
  type ServerInterceptor,
} from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

import { addressOf, isLoopback, SIZES } from "./channel.js";
import { CannotServe } from "./errors.js";
import { Host, type HostOptions, type Offered } from "./host.js";
import { messageOf } from "./about.js";
import { addReflection } from "./reflection.js";
import { Services } from "./services.js";
import { GRACE_MS, untilSignalled, within } from "./signals.js";

const PROTOCOL_MAJOR = 1;
/** What is left after the grace, for the last answers to leave. */
const FLUSH_MS = 200;

/** How a server secures itself. PEM, not paths. */
export interface ServerTls {
  /** The server's certificate, with any intermediate ones. */
  cert: Buffer | string;
  /** Its key. */
  key: Buffer | string;
  /** The authority that signs callers' certificates; callers without one are refused. */
  clientCa?: Buffer | string;
}

/** How to serve. */
export interface ServeOptions extends HostOptions {
  /** `host:port` or `unix:/path`; port 0, as by default, takes a free one. */
  address?: string;
  /** Certificate and key. */
  tls?: ServerTls;
  /** What callers must send as bearer token. */
  token?: string;
  /** Allow a network address without TLS and token. */
  unsafe?: boolean;
}

/** A server within a larger program. `serve` is for programs that do nothing else. */
export class Server {
  /** Where it listens; once started, with the real port. */
  address: string;
  readonly #host: Host;
  readonly #services: Services;
  readonly #health = new HealthImplementation();
  readonly #server: GrpcServer;
  readonly #credentials: ServerCredentials;

  /** Throws `NotServable` or `CannotServe` for what cannot work. */
  constructor(offered: Offered | readonly Offered[], options: ServeOptions = {}) {
    this.address = options.address ?? "127.0.0.1:0";
    checkAddress(this.address, Boolean(options.tls && options.token), options.unsafe ?? false);
    this.#host = new Host(offered, options);
    this.#services = new Services(this.#host);
    this.#credentials = credentialsOf(options.tls);
    const interceptors = options.token ? [tokenCheck(options.token)] : [];
    this.#server = new GrpcServer({ ...SIZES, interceptors });
    this.#services.addTo(this.#server);
    this.#health.addToServer(this.#server);
    addReflection(this.#server, [...this.#services.names, "grpc.health.v1.Health"]);
  }

  /** The names of all that is served. */
  get names(): string[] {
    return this.#host.names;
  }

  /** Start listening. Throws `CannotServe` if the address is taken. */
  async start(): Promise<this> {
    const { host, path } = addressOf(this.address);
    if (path !== undefined) await clearSocket(this.address, path);
    const port = await new Promise<number>((resolve, reject) => {
      this.#server.bindAsync(this.address, this.#credentials, (error, bound) => {
        if (error === null) resolve(bound);
        else reject(cannotListen(this.address, error));
      });
    });
    if (path === undefined) this.address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    this.#report("SERVING");
    return this;
  }

  /** Take no more calls, finish those in progress within the grace, and end. */
  async stop({ graceMs = GRACE_MS }: { graceMs?: number } = {}): Promise<void> {
    this.#report("NOT_SERVING");
    // Health is answered until the last call is, so that a draining
    // server is not taken for a dead one.
    if (!(await within(graceMs, this.#services.drain()))) {
      console.error("calls in progress did not end in time and are given up");
    }
    const closed = new Promise<void>((resolve) => { this.#server.tryShutdown(() => { resolve(); }); });
    await within(FLUSH_MS, closed);
    this.#server.forceShutdown();
  }

  /** Stop at the end of a block that begins with `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #report(state: "SERVING" | "NOT_SERVING"): void {
    for (const name of ["", ...this.#services.names]) this.#health.setStatus(name, state);
  }
}

/**
 * Serve until SIGINT or SIGTERM, then finish the calls in progress and return.
 *
 * On port 0, or with `CBENCH_HANDSHAKE=1` in the environment, one line on
 * stdout says where: `cbench|1|tcp|127.0.0.1:40123`. From then on all that is
 * printed goes to stderr, because stdout may no longer be read.
 */
export async function serve(
  offered: Offered | readonly Offered[],
  options: ServeOptions = {},
): Promise<void> {
  const server = new Server(offered, options);
  const asked = server.address;
  let end = (): void => {};
  const ended = new Promise<void>((resolve) => (end = resolve));
  const work = async (): Promise<void> => {
    await server.start();
    handshake(asked, server.address);
    console.error(`serving ${server.names.join(", ")} on ${server.address}`);
    await ended;
    await server.stop();
  };
  await untilSignalled(end, work());
}

function handshake(asked: string, address: string): void {
  if (addressOf(asked).port !== 0 && process.env.CBENCH_HANDSHAKE !== "1") return;
  const { path } = addressOf(address);
  const where = path === undefined ? `tcp|${address}` : `unix|${path}`;
  writeSync(1, `cbench|${PROTOCOL_MAJOR}|${where}\n`);
  process.stdout.write = process.stderr.write.bind(process.stderr);
}

function checkAddress(address: string, isSecured: boolean, unsafe: boolean): void {
  const { path, port } = addressOf(address);
  if (path === undefined && port === undefined) {
    throw new CannotServe(`"${address}" has no port. Give host:port, or unix:/path.`);
  }
  if (!isLoopback(address) && !isSecured && !unsafe) {
    throw new CannotServe(
      `${address} can be reached from the network, where anybody could call what is served. ` +
        "Pass tls and token, serve on 127.0.0.1, or accept it with unsafe: true.",
    );
  }
}

function cannotListen(address: string, error: Error): CannotServe {
  return new CannotServe(
    `cannot listen on ${address}: it is taken, or not an address of this machine ` +
      `(${error.message}). Choose another, or port 0 for any free one.`,
  );
}

/** Remove the socket file of a server that is gone; refuse that of one that still runs. */
async function clearSocket(address: string, path: string): Promise<void> {
  if (!existsSync(path)) return;
  const isAnswered = await new Promise<boolean>((resolve) => {
    const probe = connect(path, () => {
      probe.destroy();
      resolve(true);
    });
    probe.on("error", () => { resolve(false); });
  });
  if (isAnswered) {
    throw new CannotServe(`${address} is taken by another server. Stop it, or choose another path.`);
  }
  unlinkSync(path);
}

function credentialsOf(tls: ServerTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure();
  const ca = tls.clientCa === undefined ? null : Buffer.from(tls.clientCa);
  const pair = { cert_chain: Buffer.from(tls.cert), private_key: Buffer.from(tls.key) };
  try {
    // gRPC looks at them only when somebody connects.
    createSecureContext({ cert: pair.cert_chain, key: pair.private_key, ...(ca && { ca }) });
    return ServerCredentials.createSsl(ca, [pair], ca !== null);
  } catch (error) {
    throw new CannotServe(`the certificate or its key cannot be used: ${messageOf(error)}.`);
  }
}

/** Refuses calls without the token, except to ask for health. */
function tokenCheck(token: string): ServerInterceptor {
  const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
  const expected = digest(`Bearer ${token}`);
  return (method, call) =>
    new ServerInterceptingCall(call, {
      start: (next) => {
        next({
          onReceiveMetadata: (metadata, go) => {
            const given = String(metadata.get("authorization")[0] ?? "");
            const isHealth = method.path.startsWith("/grpc.health.v1.Health/");
            if (isHealth || timingSafeEqual(digest(given), expected)) {
              go(metadata);
            } else {
              const details = "a bearer token is needed in `authorization`";
              call.sendStatus({ code: status.UNAUTHENTICATED, details });
            }
          },
        });
      },
    });
}
