/** Targets and channels: sizes, keepalive, TLS and the bearer token in one place. */

import { BlockList, isIP } from "node:net";

import { Client, credentials, Metadata, type ChannelOptions } from "@grpc/grpc-js";

import { InsecureToken } from "./errors.js";

/** The largest message either side takes. */
export const MAX_MESSAGE_BYTES = 128 * 1024 * 1024;

/** Message sizes, for channels and servers alike. */
export const SIZES: ChannelOptions = {
  "grpc.max_receive_message_length": MAX_MESSAGE_BYTES,
  "grpc.max_send_message_length": MAX_MESSAGE_BYTES,
};

const OPTIONS: ChannelOptions = {
  ...SIZES,
  "grpc.keepalive_time_ms": 30_000,
  "grpc.keepalive_timeout_ms": 10_000,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 2_000,
  "grpc.enable_http_proxy": 0,
  // Retries are the caller's, who knows the deadline and the call id.
  "grpc.enable_retries": 0,
  // A shared pool would hand a new channel the backoff of an old one.
  "grpc.use_local_subchannel_pool": 1,
  // With HTTP/2's 64 kB a large example would crawl.
  "grpc-node.flow_control_window": 4 * 1024 * 1024,
};

/** How to secure a connection; `{}` means the usual public authorities. PEM, not paths. */
export interface Tls {
  /** The certificates to trust. */
  ca?: Buffer | string;
  /** This side's own certificate, for mutual TLS. */
  cert?: Buffer | string;
  /** Its key. */
  key?: Buffer | string;
  /** The name to expect in the certificate, where it differs from the target's. */
  serverName?: string;
}

/** How to reach a daemon. */
export interface Connection {
  /** `true`, or your own certificates. */
  tls?: Tls | boolean;
  /** The bearer token the daemon wants. */
  token?: string;
}

/** Where a target leads. A socket has a `path`, everything else a host and a port. */
export interface Address {
  readonly host: string;
  readonly port: number | undefined;
  readonly path: string | undefined;
}

/** Take a target such as `localhost:1`, `dns:///h:1` or `unix:/s` apart. */
export function addressOf(target: string): Address {
  const socket = /^unix:(?:\/\/)?(.*)$/.exec(target);
  if (socket) return { host: "", port: undefined, path: socket[1] };
  const rest = target.replace(/^(dns:(\/\/[^/]*\/)?|ipv4:|ipv6:)/, "");
  const parts = /^(?:\[(.*)\]|([^:]*))(?::(\d+))?$/.exec(rest);
  if (parts === null) return { host: rest, port: undefined, path: undefined };
  const port = parts[3] === undefined ? undefined : Number(parts[3]);
  return { host: parts[1] ?? parts[2] ?? "", port, path: undefined };
}

/** The addresses of a target, in the order in which they are preferred: `host:a,host:b`. */
export function addressesOf(target: string): string[] {
  const addresses = target.split(",").map((each) => each.trim()).filter(Boolean);
  return addresses.length > 0 ? addresses : [target];
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet("127.0.0.0", 8, "ipv4");
LOOPBACK.addAddress("::1", "ipv6");

/** Whether a target cannot leave this machine. */
export function isLoopback(target: string): boolean {
  const { host, path } = addressOf(target);
  if (path !== undefined || host === "localhost") return true;
  const family = isIP(host);
  return family !== 0 && LOOPBACK.check(host, family === 6 ? "ipv6" : "ipv4");
}

/** Refuse to send a token in the clear over a network. */
export function checkToken(target: string, connection: Connection): void {
  if (connection.token && !connection.tls && !isLoopback(target)) {
    throw new InsecureToken(
      `a token for ${target} would travel unencrypted over the network. ` +
        "Pass tls: true, or tls: { ca } for a certificate of your own.",
    );
  }
}

/** Open a channel. */
export function openClient(target: string, connection: Connection): Client {
  checkToken(target, connection);
  if (!connection.tls) return new Client(target, credentials.createInsecure(), OPTIONS);
  const tls: Tls = connection.tls === true ? {} : connection.tls;
  const [ca, key, cert] = [tls.ca, tls.key, tls.cert].map((pem) => (pem ? Buffer.from(pem) : null));
  const named = tls.serverName ? { "grpc.ssl_target_name_override": tls.serverName } : {};
  return new Client(target, credentials.createSsl(ca, key, cert), { ...OPTIONS, ...named });
}

/** What to send along with every call. */
export function headers(connection: Connection): Metadata {
  const metadata = new Metadata();
  if (connection.token) metadata.set("authorization", `Bearer ${connection.token}`);
  return metadata;
}

/** gRPC hands bytes through; messages are encoded and decoded where their errors belong. */
export function asBytes(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.length);
}
