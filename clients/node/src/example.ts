/** One example, as user code sees it. */

import { Unencodable } from "./errors.js";
import type { Example as Message, ExampleId } from "./gen/cbench/v1/example.js";
import {
  asInteger,
  asRecord,
  decodeFields,
  encodeFields,
  inRange,
  setField,
  wellFormed,
  type Fields,
} from "./values.js";

/**
 * One record of a dataset. It does not change; `with` gives a changed copy.
 *
 * Fields are properties: `example.context`. A field that is named like one of
 * the methods here is reached by `get`. TypeScript knows those that most
 * datasets have; declare others, `example: Example & { readonly choices: string[] }`,
 * or ask for them with `get`.
 */
export class Example {
  /** What tells it from the others of its dataset. */
  declare readonly id?: string | number | bigint;
  /** The dataset it is from. */
  declare readonly dataset?: string;
  /** The text to work on. */
  declare readonly context?: string;
  /** What is asked about it. */
  declare readonly question?: string;
  /** The answer of a system. */
  declare readonly response?: string;
  /** The answer that is expected, which evaluators see and systems do not. */
  declare readonly answer?: unknown;
  readonly #fields: Map<string, unknown>;

  constructor(fields: Iterable<readonly [string, unknown]> | Record<string, unknown>) {
    this.#fields = new Map(Symbol.iterator in fields ? fields : Object.entries(fields));
    for (const [name, value] of this.#fields) {
      if (!METHODS.has(name)) setField(this, name, value);
    }
    Object.freeze(this);
  }

  /** Return a field, `undefined` where there is none. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- only the dataset knows what a field holds
  get(name: string): any {
    return this.#fields.get(name);
  }

  /** Whether there is a field of that name. */
  has(name: string): boolean {
    return this.#fields.has(name);
  }

  /** Return a copy in which these fields are added or replaced. */
  with(changes: Record<string, unknown>): Example {
    return new Example([...this.#fields, ...Object.entries(changes)]);
  }

  /** Return a copy that lacks these fields. */
  without(...names: string[]): Example {
    return new Example([...this.#fields].filter(([name]) => !names.includes(name)));
  }

  /** Return the fields by name, those included that are named like a method. */
  entries(): IterableIterator<[string, unknown]> {
    return this.#fields.entries();
  }
}

const METHODS = new Set(Object.getOwnPropertyNames(Example.prototype));

/** The fields of an example or a plain object, undefined for anything else. */
export function fieldsOf(value: unknown): Map<string, unknown> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const entries = value instanceof Example ? value.entries() : asRecord(value);
  return entries && new Map(entries);
}

/** Encode an example; `id` and `dataset` have their own fields. */
export function encodeExample(example: Example | Record<string, unknown>): Message {
  const fields = fieldsOf(example);
  if (fields === undefined) throw new Unencodable("an example is an object with named fields.");
  const message: Message = { id: undefined, dataset: undefined, fields: new Map() };
  if (fields.has("id")) {
    message.id = encodeId(fields.get("id"));
    fields.delete("id");
  }
  const dataset = fields.get("dataset");
  if (typeof dataset === "string") {
    message.dataset = wellFormed(dataset, ["dataset"]);
    fields.delete("dataset");
  }
  message.fields = encodeFields(fields);
  return message;
}

/** Decode an example into its fields. */
export function decodeExample(message: Message | undefined): Example {
  const head: Fields = {};
  if (message?.id !== undefined) head.id = decodeId(message.id);
  if (message?.dataset !== undefined) head.dataset = message.dataset;
  const fields = message === undefined ? {} : decodeFields(message.fields);
  return new Example([...Object.entries(head), ...Object.entries(fields)]);
}

/** Encode an id, which is text or an integer and keeps its type. */
function encodeId(id: unknown): ExampleId {
  if (typeof id === "string") return { kind: { $case: "text", value: wellFormed(id, ["id"]) } };
  if (typeof id === "bigint" || Number.isSafeInteger(id)) {
    return { kind: { $case: "number", value: inRange(BigInt(id as bigint | number), ["id"]) } };
  }
  throw new Unencodable(`field "id" holds ${String(id)}; an id is text or an integer.`);
}

/** Decode an id. */
export function decodeId(message: ExampleId): string | number | bigint {
  if (message.kind === undefined) {
    throw new Unencodable('field "id" is an ExampleId with no kind set.');
  }
  return message.kind.$case === "text" ? message.kind.value : asInteger(message.kind.value);
}
