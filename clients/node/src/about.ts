/** Descriptions of users' objects: what each has to be, and what it may say of itself. */

import type { TakesOptions } from "./declared.js";
import { NotServable, RemoteFailure, type Origin } from "./errors.js";

/** How many calls run at once by default. */
export const DEFAULT_CONCURRENCY = 256;

const MAX_TRACE = 16_000;
/** Those of our files that call user code. */
const CALLERS = ["adapters.js", "memory.js"].map((name) => new URL(name, import.meta.url).href);

/** What every served object may say of itself. */
export interface About extends TakesOptions {
  /** What rows and reports show. */
  readonly name: string;
  /** The version under test, in the form its author uses. */
  readonly version?: string;
  /** One sentence for a list. */
  readonly description?: string;
  /** How many calls may run at once; 256 where not stated. */
  readonly maxConcurrency?: number;
}

/** Whether an object has the method. */
export function offers(owner: unknown, method: string): boolean {
  return typeof (owner as Record<string, unknown> | null | undefined)?.[method] === "function";
}

/** Return the name of a system, or refuse it. */
export function systemName(owner: unknown): string {
  const name: unknown = (owner as Partial<About>).name;
  if (typeof name === "string" && name !== "" && name.length <= 200 && !name.includes("/")) {
    if (name.isWellFormed()) return name;
  }
  throw new NotServable(
    `${kindOf(owner)} has the name ${JSON.stringify(name)}; a name is 1 to 200 characters without "/".`,
  );
}

/** Return the name of an evaluator, or refuse it. */
export function evaluatorName(owner: unknown): string {
  const name: unknown = (owner as Partial<About>).name;
  if (typeof name === "string" && /^[a-z0-9-]{1,200}$/.test(name)) return name;
  throw new NotServable(
    `${kindOf(owner)} has the name ${JSON.stringify(name)}; an evaluator's name is made of ` +
      "lowercase letters, digits and dashes.",
  );
}

/** Return how many calls may run at once, undefined if the object does not say. */
export function statedLimit(owner: Partial<About>, byDefault?: number): number | undefined {
  const limit: unknown = owner.maxConcurrency ?? byDefault;
  if (limit === undefined || limit === null) return undefined;
  if (Number.isSafeInteger(limit) && (limit as number) >= 1 && (limit as number) < 2 ** 31) {
    return limit as number;
  }
  throw new NotServable(`maxConcurrency is ${String(limit)}; it must be a whole number from 1.`);
}

/** What an object says of itself, as text. */
export function aboutOf(owner: Partial<About>): { version: string; description: string } {
  const version = String(owner.version ?? "").toWellFormed();
  return { version, description: String(owner.description ?? "").toWellFormed() };
}

/** A short noun for an object, for messages. */
export function kindOf(owner: unknown): string {
  if (typeof owner === "function") return isClass(owner) ? `the class ${owner.name}` : "a function";
  if (typeof owner !== "object" || owner === null) return String(owner);
  const name = (owner.constructor as { name?: string } | undefined)?.name;
  return name && name !== "Object" ? `a ${name}` : "an object";
}

/** Whether a function can only be called with `new`. */
export function isClass(owner: unknown): boolean {
  return typeof owner === "function" && /^class\b/.test(Function.prototype.toString.call(owner));
}

/** Refuse what user code returned. */
export function badReturn(method: string, value: unknown, wanted: string): never {
  const got = value === null ? "null" : typeof value === "object" ? kindOf(value) : typeof value;
  throw new RemoteFailure(`${method} returned ${got}, not ${wanted}`, { reason: "BAD_RETURN" });
}

/** Turn what user code threw into a failure with the user's part of the stack. */
export function failureOf(error: unknown, origin: Origin): RemoteFailure {
  if (error instanceof RemoteFailure) {
    if (error.origin !== undefined) return error;
    const { message, reason, retryable, retryDelayMs, stackTrace, attempts } = error;
    return new RemoteFailure(message, { origin, reason, retryable, retryDelayMs, stackTrace, attempts });
  }
  return new RemoteFailure(messageOf(error), {
    origin,
    reason: "EXCEPTION",
    stackTrace: userStack(error),
  });
}

/** Describe anything that can be thrown, which in JavaScript is anything. */
export function messageOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return "its message cannot be shown";
  }
}

function userStack(error: unknown): string {
  let stack: unknown;
  try {
    stack = (error as Error | null | undefined)?.stack;
  } catch {
    stack = undefined;
  }
  if (typeof stack !== "string") return `${messageOf(error)}\n    (thrown without a stack)`;
  // Innermost first: what led to the user's code comes last, and is the same for every call.
  const lines = stack.split("\n");
  const end = lines.findIndex((line) => CALLERS.some((file) => line.includes(file)));
  return (end > 0 ? lines.slice(0, end) : lines).join("\n").slice(0, MAX_TRACE);
}
