/**
 * Errors at this end of the wire.
 *
 * ClientError
 * ├── Unencodable      a value that cannot cross the wire without loss
 * ├── Unreachable      no daemon answers, or not in our protocol
 * ├── RemoteFailure    one call got no result, and why
 * ├── Refused          the other side declined the request; `reason` says why
 * ├── NotServable      an object lacks what it needs to be served
 * ├── CannotServe      the address cannot be served on
 * ├── InvalidSpec      an object does not describe a run
 * └── InsecureToken    a token would travel in the clear
 */

/** What went wrong, in a sentence for a person; `reason` is for programs. */
export class ClientError extends Error {
  /** A stable UPPER_SNAKE_CASE identifier. */
  readonly reason: string;

  constructor(message: string, reason = "INTERNAL") {
    super(message);
    this.name = new.target.name;
    this.reason = reason;
  }
}

/** A value cannot cross the wire without loss. */
export class Unencodable extends ClientError {
  constructor(message: string) {
    super(message, "UNENCODABLE_VALUE");
  }
}

/** Nothing answers at that address, or not what was expected. */
export class Unreachable extends ClientError {
  constructor(message: string) {
    super(message, "UNREACHABLE");
  }
}

/** An object lacks what it needs to be served. */
export class NotServable extends ClientError {
  constructor(message: string) {
    super(message, "NOT_SERVABLE");
  }
}

/** The address cannot be served on. */
export class CannotServe extends ClientError {
  constructor(message: string) {
    super(message, "CANNOT_SERVE");
  }
}

/** An object does not describe the run it should. */
export class InvalidSpec extends ClientError {
  constructor(message: string) {
    super(message, "INVALID_SPEC");
  }
}

/** A token would travel in the clear. */
export class InsecureToken extends ClientError {
  constructor(message: string) {
    super(message, "INSECURE_TOKEN");
  }
}

/** A field of a request that is to blame. */
export interface FieldViolation {
  /** Its path, such as `spec.systems[1].options["ratio"]`. */
  readonly field: string;
  /** Why, for a person. */
  readonly description: string;
}

/** The other side declined a request; `code` is the name of the gRPC status. */
export class Refused extends ClientError {
  readonly code: string;
  /** The fields of the request that are to blame; empty where the daemon does not say. */
  readonly violations: readonly FieldViolation[];

  constructor(message: string, code: string, reason = "", violations: readonly FieldViolation[] = []) {
    super(message, reason || code);
    this.code = code;
    this.violations = violations;
  }
}

/** Who is responsible for a failure. */
export type Origin = "system" | "evaluator" | "transport" | "daemon" | "dataset" | "reader";

/** What a `RemoteFailure` may say besides its message. */
export interface FailureDetails {
  /** Which party is responsible. By default the one that throws it. */
  origin?: Origin;
  /** A stable UPPER_SNAKE_CASE identifier. */
  reason?: string;
  /** Whether the same call may succeed if made again unchanged. */
  retryable?: boolean;
  /** The least time to wait before a retry. */
  retryDelayMs?: number;
  /** Where it happened. */
  stackTrace?: string;
  /** Calls made before giving up. */
  attempts?: number;
  /** Of a run that failed: what of its spec is to blame, such as `spec.datasets[1]`. */
  field?: string;
}

/** One call got no result. Throw it in user code to say more than an `Error` can. */
export class RemoteFailure extends ClientError {
  readonly origin: Origin | undefined;
  readonly retryable: boolean;
  readonly retryDelayMs: number | undefined;
  readonly stackTrace: string;
  readonly attempts: number;
  readonly field: string;

  constructor(message: string, details: FailureDetails = {}) {
    super(message, details.reason);
    this.origin = details.origin;
    this.retryable = details.retryable ?? false;
    this.retryDelayMs = details.retryDelayMs;
    this.stackTrace = details.stackTrace ?? "";
    this.attempts = details.attempts ?? 0;
    this.field = details.field ?? "";
  }
}
