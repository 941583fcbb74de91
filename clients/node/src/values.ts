/**
 * JavaScript values to messages and back, without loss.
 *
 * JavaScript has one kind of number where the wire has two. The rule:
 *
 * - a number that is a safe integer is an integer on the wire, as is a bigint;
 * - any other number (fractions, NaN, infinities, -0, beyond 2^53) is a double;
 * - a double that happens to be a safe integer is a `Float`, in both directions.
 *
 * Integers beyond 2^53 arrive as bigint. What cannot cross is refused by the
 * name of the field that holds it, never rounded or dropped.
 */

import { Unencodable } from "./errors.js";
import { Value as Message } from "./gen/cbench/v1/example.js";

/** The deepest nesting that crosses the wire. */
export const MAX_DEPTH = 30;

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 63n - 1n;

/** A double that is a whole number, such as 1.0. Computes like a number. */
export class Float extends Number {}

/** Mark a number as a double, where a whole number would otherwise be an integer. */
export function float(value: number): Float {
  return new Float(value);
}

/** What an example's field may hold. Arrives with `Uint8Array` as `Buffer`. */
export type Value =
  | null
  | boolean
  | number
  | bigint
  | Float
  | string
  | Uint8Array
  | readonly Value[]
  | { readonly [key: string]: Value };

/** Named values. */
export type Fields = Record<string, Value>;

/** Where in a value we are; only errors spell it out. */
type Path = (string | number)[];

function named(path: Path): string {
  const text = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("");
  const whole = text.replace(/^\./, "");
  return whole.length > 80 ? `${whole.slice(0, 80).toWellFormed()}…` : whole.toWellFormed();
}

/** Encode one value. Throws `Unencodable`, naming `name`, for what cannot cross. */
export function encodeValue(value: unknown, name = "value"): Message {
  return { kind: encode(value, [name], 0) };
}

/** Encode named values. */
export function encodeFields(
  fields: Iterable<readonly [string, unknown]>,
  ...prefix: string[]
): Map<string, Message> {
  return entries(fields, prefix, 0);
}

function encode(value: unknown, path: Path, depth: number): Message["kind"] {
  switch (typeof value) {
    case "string":
      return { $case: "stringValue", value: wellFormed(value, path) };
    case "number":
      // -0 is not an integer: as one it would lose its sign.
      return Number.isSafeInteger(value) && !Object.is(value, -0)
        ? { $case: "intValue", value: BigInt(value) }
        : { $case: "doubleValue", value };
    case "boolean":
      return { $case: "boolValue", value };
    case "bigint":
      return { $case: "intValue", value: inRange(value, path) };
    case "object":
      return value === null ? { $case: "nullValue", value: true } : encodeObject(value, path, depth);
    default:
      throw unsendable(typeof value, path);
  }
}

function encodeObject(value: object, path: Path, depth: number): Message["kind"] {
  if (value instanceof Float) return { $case: "doubleValue", value: value.valueOf() };
  if (value instanceof Uint8Array) {
    return { $case: "bytesValue", value: Buffer.from(value.buffer, value.byteOffset, value.length) };
  }
  const record = asRecord(value);
  if (record === undefined && !Array.isArray(value)) throw unsendable(typeName(value), path);
  if (depth >= MAX_DEPTH) {
    throw new Unencodable(
      `field "${named(path)}" nests more than ${MAX_DEPTH} levels deep, the most that can ` +
        "cross the wire. Flatten it, or send it as text.",
    );
  }
  return record === undefined
    ? { $case: "listValue", value: { values: items(value as unknown[], path, depth + 1) } }
    : { $case: "mapValue", value: { fields: entries(record, path, depth + 1) } };
}

function items(list: readonly unknown[], path: Path, depth: number): Message[] {
  // Array.from visits holes, which are refused as undefined.
  return Array.from(list, (item, position) => {
    path.push(position);
    const kind = encode(item, path, depth);
    path.pop();
    return { kind };
  });
}

/** The entries of a plain object or a Map, undefined for anything else. */
export function asRecord(value: object): Iterable<readonly [string, unknown]> | undefined {
  if (value instanceof Map) return value as Map<string, unknown>;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  return isPlain && !Array.isArray(value) ? Object.entries(value) : undefined;
}

function entries(
  record: Iterable<readonly [unknown, unknown]>,
  path: Path,
  depth: number,
): Map<string, Message> {
  const fields = new Map<string, Message>();
  for (const [key, value] of record) {
    if (typeof key !== "string") {
      throw new Unencodable(
        `"${named(path)}" has the key ${String(key)}; keys must be text to cross the wire.`,
      );
    }
    path.push(key);
    wellFormed(key, path);
    fields.set(key, { kind: encode(value, path, depth) });
    path.pop();
  }
  return fields;
}

/** Refuse text that is not Unicode. */
export function wellFormed(text: string, path: Path): string {
  if (text.isWellFormed()) return text;
  throw new Unencodable(
    `field "${named(path)}" holds text with a lone surrogate, which is not Unicode. ` +
      "Call toWellFormed() on it first.",
  );
}

/** Refuse an integer that does not fit into 64 bits. */
export function inRange(value: bigint, path: Path): bigint {
  if (value >= INT_MIN && value <= INT_MAX) return value;
  throw new Unencodable(
    `field "${named(path)}" holds an integer beyond 64 bits, which cannot cross the wire. ` +
      "Send it as text.",
  );
}

function unsendable(type: string, path: Path): Unencodable {
  const hint = type === "undefined" ? " Leave it out, or send null." : "";
  return new Unencodable(
    `field "${named(path)}" holds ${type === "undefined" ? type : `a ${type}`}, which cannot cross ` +
      `the wire. Send text, numbers, bytes, arrays or plain objects.${hint}`,
  );
}

function typeName(value: object): string {
  const name: unknown = (value.constructor as { name?: unknown } | undefined)?.name;
  return typeof name === "string" && name !== "" ? name : "object";
}

/** Decode one value. Throws `Unencodable` for one with no kind set. */
export function decodeValue(message: Message, name = "value"): Value {
  return decode(message, [name]);
}

/** Decode named values, in sorted order: maps have none on the wire. */
export function decodeFields(fields: Map<string, Message>, ...prefix: string[]): Fields {
  return decodeEntries(fields, prefix);
}

function decode(message: Message, path: Path): Value {
  const kind = message.kind;
  switch (kind?.$case) {
    case "stringValue":
    case "boolValue":
    case "bytesValue":
      return kind.value;
    case "intValue":
      return asInteger(kind.value);
    case "doubleValue":
      return Number.isSafeInteger(kind.value) && !Object.is(kind.value, -0)
        ? new Float(kind.value)
        : kind.value;
    case "listValue":
      return kind.value.values.map((item, position) => {
        path.push(position);
        const value = decode(item, path);
        path.pop();
        return value;
      });
    case "mapValue":
      return decodeEntries(kind.value.fields, path);
    case "nullValue":
      if (kind.value) return null;
      throw new Unencodable(`field "${named(path)}" has null_value set to false, which means nothing.`);
    case undefined:
      throw new Unencodable(`field "${named(path)}" is a Value with no kind set.`);
  }
}

function decodeEntries(fields: Map<string, Message>, path: Path): Fields {
  const record: Fields = {};
  for (const key of [...fields.keys()].sort()) {
    path.push(key);
    setField(record, key, decode(fields.get(key) as Message, path));
    path.pop();
  }
  return record;
}

/** Set a property under any name, even `__proto__`. */
export function setField(target: object, name: string, value: unknown): void {
  if (name === "__proto__") {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    (target as Record<string, unknown>)[name] = value;
  }
}

/** A number where that is exact, else a bigint. */
export function asInteger(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
