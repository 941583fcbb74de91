/** Plain objects to messages and back, by shapes that are generated from the contract. */

import { InvalidSpec, Unencodable } from "./errors.js";
import { decodeExample, decodeId } from "./example.js";
import type { Example as ExampleMessage, ExampleId, Value as ValueMessage } from "./gen/cbench/v1/example.js";
import type { Failure } from "./gen/cbench/v1/failure.js";
import type { Usage } from "./gen/cbench/v1/system.js";
import type { Duration } from "./gen/google/protobuf/duration.js";
import { decodeFailure, decodeUsage, durationOf, emptyMessage, millisecondsOf } from "./messages.js";
import { asInteger, decodeFields, decodeValue, encodeFields, encodeValue, inRange } from "./values.js";

/** What a field holds. `fields` are values by name, `word` is an enum's, `choice` one that may be left out. */
export type Kind =
  | "text" | "flag" | "number" | "whole" | "long" | "count" | "span" | "time"
  | "word" | "choice" | "fields" | "value" | "message" | "example" | "id" | "failure" | "usage";

/** One field of a message, as users see it. */
export interface Field {
  readonly kind: Kind;
  /** Its name in the message, where that is another. */
  readonly wire?: string;
  /** Whether it is a list. */
  readonly many?: boolean;
  /** Whether it is a map. */
  readonly keyed?: boolean;
  /** The name of the choice that it is part of. */
  readonly oneof?: string;
  /** The shape of what it holds. */
  readonly of?: () => Shape;
  /** The numbers of an enum's words. */
  readonly words?: Readonly<Record<string, number>>;
}

/** A message, as users see it. */
export interface Shape {
  readonly type: { decode(data: Uint8Array): object };
  readonly fields: Readonly<Record<string, Field>>;
}

/** An object with exactly one of these fields. */
export type OneOf<T> = {
  [K in keyof T]: { readonly [P in K]: T[P] } & { readonly [P in Exclude<keyof T, K>]?: undefined };
}[keyof T];

/** An object with one of these fields, or none. */
export type AtMostOneOf<T> = OneOf<T> | { readonly [K in keyof T]?: undefined };

type Message = Record<string, unknown>;
type Encoder = (value: unknown, path: string, field: Field) => unknown;

function wrong(path: string, value: unknown, wanted: string): InvalidSpec {
  return new InvalidSpec(`field "${path}" cannot be ${String(value)}: it is ${wanted}.`);
}

const typed =
  (type: string, wanted: string): Encoder =>
  (value, path) => {
    if (typeof value !== type) throw wrong(path, value, wanted);
    return value;
  };

const ENCODERS: Partial<Record<Kind, Encoder>> = {
  text: typed("string", "text"),
  flag: typed("boolean", "true or false"),
  number: typed("number", "a number"),
  whole: (value, path) => {
    if (!Number.isSafeInteger(value)) throw wrong(path, value, "a whole number");
    return value;
  },
  long: (value, path) => {
    if (typeof value !== "bigint" && !Number.isSafeInteger(value)) throw wrong(path, value, "an integer");
    return inRange(BigInt(value as bigint | number), [path]);
  },
  span: (value, path) => {
    if (!Number.isFinite(value)) throw wrong(path, value, "a number of milliseconds");
    return durationOf(value as number);
  },
  choice: (value, path, { words = {} }) => {
    const known = Object.keys(words).filter((word) => words[word] !== 0);
    if (!known.includes(String(value))) throw wrong(path, value, `one of ${known.join(", ")}`);
    return words[String(value)];
  },
  fields: (value, path) => encodeFields(record(value, path), path),
  value: (value, path) => encodeValue(value, path),
  message: (value, path, field) => encodeMessage(shapeOf(field), value, path),
};

function record(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrong(path, value, "an object");
  }
  return Object.entries(value);
}

function shapeOf(field: Field): Shape {
  if (field.of === undefined) throw new TypeError(`a field of kind ${field.kind} has no shape`);
  return field.of();
}

/** Encode an object. Throws `InvalidSpec`, naming the field. */
export function encodePlain(shape: Shape, value: unknown, path = ""): object {
  try {
    return encodeMessage(shape, value, path);
  } catch (error) {
    if (error instanceof Unencodable) throw new InvalidSpec(error.message);
    throw error;
  }
}

function encodeMessage({ type, fields }: Shape, value: unknown, path: string): Message {
  const message: Message = { ...emptyMessage(type) };
  const chosen = new Map<string, string>();
  for (const [name, each] of record(value, path)) {
    const where = path ? `${path}.${name}` : name;
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (field === undefined) {
      throw new InvalidSpec(`there is no field "${where}". Known: ${Object.keys(fields).join(", ")}.`);
    }
    if (each === undefined) continue;
    const encoded = encodeField(field, each, where);
    if (field.oneof === undefined) {
      message[field.wire ?? name] = encoded;
      continue;
    }
    const other = chosen.get(field.oneof);
    if (other !== undefined) throw new InvalidSpec(`"${path}" gives both ${other} and ${name}; give one.`);
    chosen.set(field.oneof, name);
    message[field.oneof] = { $case: field.wire ?? name, value: encoded };
  }
  return message;
}

function encodeField(field: Field, value: unknown, path: string): unknown {
  const encoder = ENCODERS[field.kind];
  if (encoder === undefined) throw new TypeError(`a field of kind ${field.kind} is only read`);
  if (field.keyed) {
    return new Map(record(value, path).map(([key, each]) => [key, encoder(each, `${path}.${key}`, field)]));
  }
  if (!field.many) return encoder(value, path, field);
  if (!Array.isArray(value)) throw wrong(path, value, "an array");
  return value.map((each, position) => encoder(each, `${path}[${position}]`, field));
}

/** Decode a message; what was not set is left out. */
export function decodePlain(shape: Shape, message: object): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const [name, field] of Object.entries(shape.fields)) {
    const given = givenTo(field, name, message as Message);
    if (given !== undefined) plain[name] = decodeField(field, given);
  }
  return plain;
}

function givenTo(field: Field, name: string, message: Message): unknown {
  const wire = field.wire ?? name;
  if (field.kind === "choice" && message[wire] === 0) return undefined;
  if (field.oneof === undefined) return message[wire];
  const chosen = message[field.oneof] as { $case: string; value: unknown } | undefined;
  return chosen?.$case === wire ? chosen.value : undefined;
}

function decodeField(field: Field, value: unknown): unknown {
  if (field.many) return (value as unknown[]).map((each) => decodeOne(field, each));
  if (field.kind === "fields") return decodeFields(value as Map<string, ValueMessage>);
  if (!field.keyed) return decodeOne(field, value);
  // Maps have no order on the wire.
  const entries = [...(value as Map<string, unknown>)].sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, decodeOne(field, each)]));
}

function decodeOne(field: Field, value: unknown): unknown {
  switch (field.kind) {
    case "count":
      return Number(value);
    case "long":
      return asInteger(value as bigint);
    case "span":
      return millisecondsOf(value as Duration);
    case "word":
    case "choice":
      return wordOf(field.words ?? {}, value as number);
    case "value":
      return decodeValue(value as ValueMessage);
    case "message":
      return decodePlain(shapeOf(field), value as object);
    case "example":
      return decodeExample(value as ExampleMessage);
    case "id":
      return decodeId(value as ExampleId);
    case "failure":
      return decodeFailure(value as Failure);
    case "usage":
      return decodeUsage(value as Usage);
    default:
      return value;
  }
}

/** The word for a number of an enum; `unspecified` for one that this version does not know. */
export function wordOf<W extends string>(words: Readonly<Record<W, number>>, number: number): W {
  const known = Object.keys(words) as W[];
  return known.find((word) => words[word] === number) ?? ("unspecified" as W);
}
