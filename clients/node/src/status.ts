/** Failures as gRPC statuses, and gRPC statuses read as errors. */

import { Metadata, status, type ServiceError, type StatusObject } from "@grpc/grpc-js";

import { Refused, Unreachable, type ClientError, type RemoteFailure } from "./errors.js";
import { Failure } from "./gen/cbench/v1/failure.js";
import { asBytes } from "./channel.js";
import { encodeFailure } from "./messages.js";
import { violationsIn } from "./violations.js";

// Peers refuse more than 8 kB of metadata, and text may triple on the way.
const MAX_DETAILS = 500;
const MAX_STACK = 2_500;
const MAX_REASON = 200;

const CODES: Record<string, status> = {
  UNKNOWN_SYSTEM: status.NOT_FOUND,
  UNKNOWN_EVALUATOR: status.NOT_FOUND,
  INVALID_ARGUMENT: status.INVALID_ARGUMENT,
  ALREADY_EXISTS: status.ALREADY_EXISTS,
  RESOURCE_EXHAUSTED: status.RESOURCE_EXHAUSTED,
  FAILED_PRECONDITION: status.FAILED_PRECONDITION,
  DEADLINE_EXCEEDED: status.DEADLINE_EXCEEDED,
  CANCELLED: status.CANCELLED,
  UNIMPLEMENTED: status.UNIMPLEMENTED,
  UNAVAILABLE: status.UNAVAILABLE,
};

/** The status of a call that failed; the whole failure travels in the trailers. */
export function statusOf(failure: RemoteFailure): StatusObject {
  const message = encodeFailure(failure);
  message.message = cut(message.message, MAX_DETAILS);
  message.stackTrace = cut(message.stackTrace, MAX_STACK);
  const metadata = new Metadata();
  // A header holds printable ASCII, and a reason should be nothing else.
  metadata.set("cbench-reason", message.reason.slice(0, MAX_REASON).replace(/[^ -~]/g, "?"));
  metadata.set("cbench-failure-bin", asBytes(Failure.encode(message).finish()));
  if (failure.retryDelayMs !== undefined) {
    metadata.set("grpc-retry-pushback-ms", String(Math.round(failure.retryDelayMs)));
  }
  const otherwise = failure.retryable ? status.UNAVAILABLE : status.INTERNAL;
  const code = CODES[failure.reason] ?? otherwise;
  return { code, details: message.message, metadata };
}

function cut(text: string, most: number): string {
  return text.slice(0, most).toWellFormed();
}

const LOST = new Set<status>([status.UNAVAILABLE, status.CANCELLED]);
const BROKEN = /RST_STREAM|Stream removed|Socket closed|GOAWAY|Connection (reset|dropped)|ECONNRESET/;

/** Whether an error is a gRPC status. */
export function isStatus(error: unknown): error is ServiceError {
  return error instanceof Error && "code" in error && typeof error.code === "number" && "details" in error;
}

/** Whether the connection broke, rather than the other side declining. */
export function isLost(error: ServiceError): boolean {
  const isBroken = error.code === status.INTERNAL || error.code === status.UNKNOWN;
  return LOST.has(error.code) || (isBroken && BROKEN.test(error.details));
}

/** Whether there was nothing to connect to. */
export function findsNobody(error: ServiceError): boolean {
  return /No connection established|ECONNREFUSED|ENOENT|Name resolution failed/.test(error.details);
}

/** Say what a status of the daemon at `target` means, in a sentence with a way out. */
export function errorOf(error: ServiceError, target: string, hasToken: boolean): ClientError {
  switch (error.code) {
    case status.UNAUTHENTICATED:
      return new Refused(
        hasToken
          ? `${target} refused the token it was given. Check the token.`
          : `${target} wants a token and none was given. Pass token: "...".`,
        "UNAUTHENTICATED",
      );
    case status.UNIMPLEMENTED:
      if (error.metadata.get("cbench-reason").length > 0) break;
      return new Unreachable(
        `a gRPC server answers at ${target}, but it has no such method: it is not a cbench daemon, ` +
          "or an older one. Check the address, or update the daemon.",
      );
    case status.DEADLINE_EXCEEDED:
      return new Unreachable(`${target} did not answer in time. Is the process busy or stopped?`);
    case status.UNAVAILABLE:
      return new Unreachable(unavailable(target, error.details));
  }
  const reason = error.metadata.get("cbench-reason")[0];
  return new Refused(
    error.details || `${target} declined without a word.`,
    status[error.code],
    typeof reason === "string" ? reason : "",
    violationsIn(error.metadata),
  );
}

// The words of grpc-js and OpenSSL for what can go wrong before the first call.
const CAUSES: readonly (readonly [RegExp, (target: string, cause: string) => string])[] = [
  [
    /ECONNREFUSED|ENOENT/,
    (target) => `nothing listens at ${target}. Is it running? Start it, or check the address.`,
  ],
  [
    /Name resolution failed|ENOTFOUND|EAI_AGAIN/,
    (target) => `the host of ${target} cannot be found. Check the name.`,
  ],
  [
    /wrong version number|packet length too long|record layer failure/i,
    (target) => `${target} does not speak TLS and this connection does. Drop tls, or check the port.`,
  ],
  [
    /alert/i,
    (target, cause) =>
      `${target} refused the TLS handshake (${cause}). ` +
      "If it asks for a client certificate, pass a valid one as tls: { cert, key }.",
  ],
  [
    /certificate|altnames|CERT_/i,
    (target, cause) =>
      `the certificate of ${target} is not accepted: ${cause}. ` +
      "Pass its authority as tls: { ca }, or the name in it as tls: { serverName }.",
  ],
  [
    /^Failed to connect/,
    (target) =>
      `something listens at ${target}, but hangs up on a connection without TLS. ` +
      "If it speaks TLS, pass tls: true, or tls: { ca } for a certificate of your own; else check the port.",
  ],
  [
    /^Protocol error/,
    (target) => `something listens at ${target}, but it does not speak gRPC. Is it the right port?`,
  ],
];

function unavailable(target: string, details: string): string {
  const cause = causeOf(details);
  for (const [words, sentence] of CAUSES) if (words.test(cause)) return sentence(target, cause);
  return `${target} is not available: ${cause}. Is it starting or shutting down?`;
}

/** Take the cause out of the words of grpc-js and OpenSSL: no numbers, times or file names. */
function causeOf(details: string): string {
  const told = details
    .replace(/^No connection established\. Last error: /, "")
    .replace(/\s*(\([\dTZ:.-]+\))?\. Resolution note:.*$/s, "")
    .replace(/^Error: /, "");
  const openssl = /SSL routines:[^:]*:([^:]+):/.exec(told)?.[1];
  return (openssl ?? told.split("\n")[0]?.slice(0, 300)) || "no reason given";
}
