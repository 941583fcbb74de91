/** Options that a component declares: announced, checked, and filled in where a run sets none. */

import { NotServable, RemoteFailure, Unencodable } from "./errors.js";
import { OptionType, type DeclaredOptions as Message, type OptionInfo as InfoMessage } from "./gen/cbench/v1/option.js";
import { encodeValue, Float, type Fields, type Value } from "./values.js";

/** One option, by what a plain object says of it. */
export interface DeclaredOption {
  /** What kind of value it takes; any, where it is left out. */
  readonly type?: "boolean" | "integer" | "number" | "text" | "list" | "map";
  /** What it is for, in one sentence. */
  readonly description?: string;
  /** What counts where a run does not set it. */
  readonly default?: unknown;
  /** Whether a run has to set it. */
  readonly required?: boolean;
  /** The least number allowed, itself included. */
  readonly minimum?: number;
  /** The largest number allowed, itself included. */
  readonly maximum?: number;
  /** The only values allowed. */
  readonly choices?: readonly (string | number | boolean)[];
  /** Whether null is allowed besides. */
  readonly nullable?: boolean;
}

/** The options of a component, by name. */
export type DeclaredOptions = Readonly<Record<string, DeclaredOption>>;

interface Types {
  boolean: boolean;
  integer: number;
  number: number;
  text: string;
  list: readonly Value[];
  map: Fields;
}

type TypeOf<O extends DeclaredOption> = O extends { readonly choices: readonly (infer C)[] }
  ? C
  : O extends { readonly type: infer T extends keyof Types }
    ? Types[T]
    : Value;

type IsSet<O extends DeclaredOption> = O extends { readonly required: true } | { readonly default: unknown } ? true : false;

/**
 * What a call has in its `options`, given what was declared:
 *
 *     const options = { ratio: { type: "number", default: 0.5, minimum: 0, maximum: 1 } } as const;
 *     process(example, { options: { ratio } }: Call<OptionsOf<typeof options>>) // a number
 */
export type OptionsOf<D extends DeclaredOptions> = {
  readonly [K in keyof D]:
    | TypeOf<D[K]>
    | (D[K] extends { readonly nullable: true } ? null : never)
    | (IsSet<D[K]> extends true ? never : undefined);
};

const TYPES: Readonly<Record<keyof Types, readonly [OptionType, string]>> = {
  boolean: [OptionType.OPTION_TYPE_BOOL, "true or false"],
  integer: [OptionType.OPTION_TYPE_INTEGER, "an integer"],
  number: [OptionType.OPTION_TYPE_NUMBER, "a number"],
  text: [OptionType.OPTION_TYPE_TEXT, "text"],
  list: [OptionType.OPTION_TYPE_LIST, "a list"],
  map: [OptionType.OPTION_TYPE_MAP, "an object"],
};
const KNOWN = new Set(["type", "description", "default", "required", "minimum", "maximum", "choices", "nullable"]);

/** What may be said of options beside those of every component. */
export interface TakesOptions {
  /** The options it takes, with their types, ranges and defaults. Others are then refused by name. */
  readonly declaredOptions?: DeclaredOptions;
  /** Whether options of any other name are taken as well, unchecked. */
  readonly acceptsOtherOptions?: boolean;
}

/** The options that one component declares. */
export class Declared {
  readonly #owner: string;
  readonly #options: DeclaredOptions;
  readonly #acceptsOthers: boolean;

  constructor(owner: string, options: DeclaredOptions, acceptsOthers: boolean) {
    this.#owner = owner;
    this.#options = options;
    this.#acceptsOthers = acceptsOthers;
  }

  /** What Describe says of them. Throws `NotServable` for what cannot be declared. */
  message(): Message {
    const options = Object.entries(this.#options).map(([name, option]) => this.#announced(name, option));
    return { options, acceptsOthers: this.#acceptsOthers };
  }

  /** Check what a run sets, and add the defaults of what it does not. */
  filled(given: Fields): Fields {
    const filled: Fields = {};
    const rest = new Map(Object.entries(given));
    for (const [name, option] of Object.entries(this.#options)) {
      const value = rest.get(name);
      rest.delete(name);
      if (value !== undefined) filled[name] = this.#suited(name, option, value);
      else if (option.default !== undefined) filled[name] = option.default as Value;
      else if (option.required) throw refused(`${this.#owner} needs the option "${name}".`);
    }
    if (this.#acceptsOthers) Object.assign(filled, Object.fromEntries(rest));
    else if (rest.size > 0) {
      const names = Object.keys(this.#options).join(", ") || "no options";
      throw refused(`${this.#owner} takes ${names}, and got: ${[...rest.keys()].join(", ")}`);
    }
    return filled;
  }

  /** The defaults alone, for a call that brings no options. */
  defaults(): Fields {
    const stated = Object.entries(this.#options).filter(([, option]) => option.default !== undefined);
    return Object.fromEntries(stated.map(([name, option]) => [name, option.default as Value]));
  }

  #announced(name: string, option: DeclaredOption): InfoMessage {
    const where = `${this.#owner} declares the option ${JSON.stringify(name)}`;
    if (!/^[^=.\s]{1,200}$/u.test(name)) {
      throw new NotServable(`${where}; a name is 1 to 200 characters without "=", "." and white space.`);
    }
    const unknown = Object.keys(option).find((key) => !KNOWN.has(key));
    if (unknown !== undefined) {
      throw new NotServable(`${where} with "${unknown}". Known: ${[...KNOWN].join(", ")}.`);
    }
    if (option.type !== undefined && !Object.hasOwn(TYPES, option.type)) {
      throw new NotServable(`${where} of type "${String(option.type)}". Known: ${Object.keys(TYPES).join(", ")}.`);
    }
    try {
      const stated = option.default === undefined ? [] : [option.default];
      for (const value of [...stated, ...(option.choices ?? [])]) this.#suited(name, option, value as Value);
      return {
        name,
        type: option.type === undefined ? OptionType.OPTION_TYPE_UNSPECIFIED : TYPES[option.type][0],
        description: String(option.description ?? "").toWellFormed(),
        defaultValue: option.default === undefined ? undefined : encoded(option, option.default, name),
        required: option.required ?? false,
        minimum: option.minimum,
        maximum: option.maximum,
        choices: (option.choices ?? []).map((choice) => encoded(option, choice, name)),
        nullable: option.nullable ?? false,
      };
    } catch (error) {
      if (!(error instanceof RemoteFailure || error instanceof Unencodable)) throw error;
      throw new NotServable(`${where}, and its own values do not suit it: ${error.message}`);
    }
  }

  /** Return a value as its type has it, or refuse it. */
  #suited(name: string, option: DeclaredOption, value: Value): Value {
    const wrong = (wanted: string): RemoteFailure =>
      refused(`${this.#owner}: option "${name}" is ${shown(value)}; it must be ${wanted}`);
    if (value === null && (option.nullable || option.type === undefined)) return value;
    // Whole doubles come as `Float`; who declares a type gets plain numbers.
    const plain = value instanceof Float && option.type !== undefined ? value.valueOf() : value;
    if (option.type !== undefined && !isOf(option.type, plain)) throw wrong(TYPES[option.type][1]);
    const number = typeof plain === "number" || plain instanceof Float ? plain.valueOf() : undefined;
    if (number !== undefined) {
      if (option.minimum !== undefined && !(number >= option.minimum)) throw wrong(`at least ${option.minimum}`);
      if (option.maximum !== undefined && !(number <= option.maximum)) throw wrong(`at most ${option.maximum}`);
    }
    if (option.choices !== undefined && !option.choices.some((choice) => choice === (number ?? plain))) {
      throw wrong(`one of ${option.choices.map(shown).join(", ")}`);
    }
    return plain;
  }
}

/** Read what an object declares; undefined if it does not say. */
export function declaredOf(owner: string, { declaredOptions, acceptsOtherOptions }: TakesOptions): Declared | undefined {
  if (declaredOptions === undefined && acceptsOtherOptions === undefined) return undefined;
  const options: unknown = declaredOptions ?? {};
  const isPlain = typeof options === "object" && options !== null && !Array.isArray(options);
  if (!isPlain || !Object.values(options).every((each) => typeof each === "object" && each !== null)) {
    throw new NotServable(`${owner} has declaredOptions that are no object of objects, such as { ratio: { type: "number" } }.`);
  }
  return new Declared(owner, options as DeclaredOptions, acceptsOtherOptions ?? false);
}

function encoded(option: DeclaredOption, value: unknown, name: string): ReturnType<typeof encodeValue> {
  return encodeValue(option.type === "number" && typeof value === "number" ? new Float(value) : value, name);
}

function refused(message: string): RemoteFailure {
  return new RemoteFailure(message, { reason: "INVALID_ARGUMENT" });
}

function isOf(type: keyof Types, value: unknown): boolean {
  switch (type) {
    case "boolean":
      return typeof value === "boolean";
    case "integer":
      return Number.isSafeInteger(value);
    case "number":
      return typeof value === "number";
    case "text":
      return typeof value === "string";
    case "list":
      return Array.isArray(value);
    case "map":
      return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  }
}

function shown(value: unknown): string {
  return typeof value === "bigint" || value instanceof Float ? String(value) : JSON.stringify(value).slice(0, 100);
}
