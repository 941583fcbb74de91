/** Run specifications, from plain objects to messages. */

import { InvalidSpec, Unencodable } from "./errors.js";
import * as bench from "./gen/cbench/v1/bench.js";
import { durationOf, emptyMessage } from "./messages.js";
import { encodeFields, inRange } from "./values.js";

/** A model behind an OpenAI-compatible endpoint. */
export interface ModelRef {
  /** The root URL, without `/v1/chat/completions`. */
  baseUrl: string;
  /** The model's name; by default the daemon's. */
  model?: string;
  /** The name of a credential in the daemon's configuration. Never a key. */
  credential?: string;
  /** Further keys of the request body, such as `temperature`. */
  options?: Record<string, unknown>;
  /** A system prompt to send first. */
  systemPrompt?: string;
  /** What it charges, in US dollars per million tokens. */
  price?: { inputUsd?: number; outputUsd?: number; cachedInputUsd?: number };
  /** How many requests to make at once; by default as many as it answers without slowing down. */
  maxConcurrency?: number;
  /** How long it has for one answer; by default the time of a row. */
  timeoutMs?: number;
  /** How many tokens fit into it, prompt and answer together. */
  contextWindow?: number | bigint;
}

/** What models are told besides an example. */
export interface Prompt {
  /** The text of a user message, with the example's fields in braces; by default the dataset's. */
  template?: string;
  /** A system message to send first. */
  systemPrompt?: string;
  /** How many examples with their answers to show first. */
  fewShot?: number;
  /** The most tokens of an answer; by default what the dataset says. */
  maxTokens?: number;
  /** Whether to send nothing but the example's own texts. */
  plain?: boolean;
}

/** Where to find a system: at one of `target`, `attached`, `builtin`, `proxy` or `predictions`. */
export interface SystemRef {
  /** The name to show; by default the one the system gives itself. */
  name?: string;
  /** A gRPC target such as `localhost:50051`. */
  target?: string;
  /** The name under which it attached itself to the daemon. */
  attached?: string;
  /** The name of a system built into the daemon. */
  builtin?: string;
  /** An OpenAI-compatible endpoint. */
  proxy?: ModelRef;
  /** Settings sent with every call. */
  options?: Record<string, unknown>;
  /** Which of the systems served at `target`; by default every one of them. */
  servedName?: string;
  /** How the daemon secures its connection to `target`; by default not at all. */
  tls?: { caPem?: string; serverName?: string };
  /** The name of a credential whose value is sent to `target` as a bearer token. */
  credential?: string;
  /** Outputs that exist already, by example id: the digest that `upload` returned. */
  predictions?: string;
  /** What it is there for; by default it is under test. */
  role?: "control" | "anchor" | "direct";
  /** The option that this system and its siblings vary, such as `ratio`. */
  sweptOption?: string;
  /** The file in which whoever launched it keeps what it prints. */
  log?: string;
}

/** Which examples to use. */
export interface DatasetRef {
  /** A registered name, or the name to show for an upload. */
  name: string;
  /** A variant of it, such as a language. */
  config?: string;
  /** At most this many examples; by default all. */
  maxExamples?: number;
  /** The digest that `upload` returned. */
  upload?: string;
  /** The split to read. */
  split?: string;
  /** Whether to shuffle, by the run's seed, before taking `maxExamples`. */
  shuffle?: boolean;
  /** Only examples whose fields, as text, equal these. */
  where?: Record<string, string>;
  /** Whether lines that cannot be read are counted and skipped. */
  skipBadLines?: boolean;
  /** The revision of the source to read; by default the newest. */
  revision?: string;
  /** Where to find an example's fields in what the source holds: paths such as `gold.text[0]`. */
  mapping?: Record<string, string>;
  /** Whether to give conversations to systems without a memory, as one context per question. */
  asTranscript?: boolean;
}

/** Where to find an evaluator; by default in the daemon. */
export interface EvaluatorRef {
  /** A registered name, or the name a remote process gives it. */
  name: string;
  /** A gRPC target such as `localhost:50052`. */
  target?: string;
  /** The name under which it attached itself to the daemon. */
  attached?: string;
  /** Its settings. */
  options?: Record<string, unknown>;
  /** The name to show, where the same evaluator is used twice. */
  label?: string;
}

/** A metric and its settings. */
export interface MetricRef {
  name: string;
  options?: Record<string, unknown>;
}

/** What to evaluate. */
export interface RunSpec {
  /** The systems to compare. */
  systems: readonly SystemRef[];
  /** The datasets to draw from. */
  datasets: readonly DatasetRef[];
  /** Evaluators to apply besides those each dataset asks for. */
  evaluators?: readonly EvaluatorRef[];
  /** The metrics to summarise with. */
  metrics?: readonly MetricRef[];
  /** How long a system has for one example; by default a minute. */
  rowTimeoutMs?: number;
  /** How many calls to make to each system at once. */
  maxConcurrency?: number;
  /** Whether systems see reference fields such as `answer`. */
  exposeReferenceFields?: boolean;
  /** Free-form labels shown with the run. */
  labels?: Record<string, string>;
  /** What kind of work this is. */
  kind?: "process" | "memory";
  /** How often each example is given to each system. */
  repeats?: number;
  /** Stop after this many failed rows: `10`, or a share such as `5%`. */
  maxFailures?: string;
  /** The model that answers for systems which only change a context. */
  reader?: ModelRef;
  /** The score that metrics read. */
  scoreField?: string;
  /** The lowest score with which a row passes; by default 0.7. */
  threshold?: number;
  /** How tokens are counted. */
  tokenizer?: string;
  /** The fields whose tokens are counted; by default every text field. */
  textFields?: readonly string[];
  /** The seed for everything random in the run. */
  seed?: number | bigint;
  /** Whether stored answers are used instead of calling the system. */
  reuse?: boolean;
  /** How long a run waits for a system that went away; by default ten minutes. */
  waitTimeoutMs?: number;
  /** Apply only `evaluators`, not those the datasets ask for. */
  replaceEvaluators?: boolean;
  /** Reference fields in addition to those the datasets declare. */
  referenceFields?: readonly string[];
  /** The most tokens of remembered text per question; only in memory runs. */
  queryBudget?: number | bigint;
  /** Only questions of these types, such as `temporal`; only in memory runs. */
  questionTypes?: readonly string[];
  /** What models are told besides an example; by default each dataset's own prompt. */
  prompt?: Prompt;
  /** The most US dollars that models may cost in this run. */
  budgetUsd?: number;
  /** Whether to add controls that cut every example to each system's own token count. */
  matchedControls?: boolean;
  /** Whether a run with a reader also asks it with the whole context and without any. */
  anchors?: boolean;
  /** Fields of examples to summarise by, besides those that the datasets declare. */
  groupBy?: readonly string[];
  /** Corrections of examples: the digest that `upload` returned. */
  errataUpload?: string;
  /** Verdicts of people on some rows: the digest that `upload` returned. */
  labelsUpload?: string;
  /** Whether judges that fail their controls are asked all the same. */
  allowUnqualifiedJudges?: boolean;
  /** The most rows of each system to time alone, before the others; by default 30. */
  timedRows?: number;
}

type Reader = (value: unknown, path: string) => unknown;

function wrong(path: string, value: unknown, wanted: string): InvalidSpec {
  return new InvalidSpec(`field "${path}" cannot be ${String(value)}: it is ${wanted}.`);
}

const typed =
  (type: string, wanted: string): Reader =>
  (value, path) => {
    if (typeof value !== type) throw wrong(path, value, wanted);
    return value;
  };
const text = typed("string", "text");
const flag = typed("boolean", "true or false");
const number = typed("number", "a number");

const whole: Reader = (value, path) => {
  if (!Number.isSafeInteger(value)) throw wrong(path, value, "a whole number");
  return value;
};

const long: Reader = (value, path) => {
  if (typeof value !== "bigint" && !Number.isSafeInteger(value)) throw wrong(path, value, "an integer");
  return inRange(BigInt(value as bigint | number), [path]);
};

const span: Reader = (value, path) => {
  if (!Number.isFinite(value)) throw wrong(path, value, "a number of milliseconds");
  return durationOf(value as number);
};

const list =
  (item: Reader): Reader =>
  (value, path) => {
    if (!Array.isArray(value)) throw wrong(path, value, "an array");
    return value.map((each, position) => item(each, `${path}[${position}]`));
  };

function record(value: unknown, path: string): [string, unknown][] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw wrong(path, value, "an object");
  }
  return Object.entries(value);
}

const texts: Reader = (value, path) =>
  new Map(record(value, path).map(([key, each]) => [key, text(each, `${path}.${key}`)]));

const options: Reader = (value, path) => encodeFields(record(value, path), path);

/** A message of these fields and no others; `undefined` means unset. */
function shape(
  type: { decode(data: Uint8Array): object },
  readers: Record<string, Reader>,
): (value: unknown, path: string) => Record<string, unknown> {
  return (value, path) => {
    const read: Record<string, unknown> = { ...emptyMessage(type) };
    for (const [name, each] of record(value, path)) {
      const where = path ? `${path}.${name}` : name;
      const reader = Object.hasOwn(readers, name) ? readers[name] : undefined;
      if (reader === undefined) {
        throw new InvalidSpec(`there is no field "${where}". Known: ${Object.keys(readers).join(", ")}.`);
      }
      if (each !== undefined) read[name] = reader(each, where);
    }
    return read;
  };
}

/** Put the one of `names` that is given into a oneof. */
function located(inner: ReturnType<typeof shape>, names: readonly string[]): Reader {
  return (value, path) => {
    const read = inner(value, path);
    const given = names.filter((name) => read[name] !== undefined);
    if (given.length > 1) throw new InvalidSpec(`"${path}" gives both ${given.join(" and ")}; give one.`);
    const name = given[0];
    const location = name === undefined ? undefined : { $case: name, value: read[name] };
    return { ...read, location };
  };
}

const modelFields = shape(bench.ModelRef, {
  baseUrl: text,
  model: text,
  credential: text,
  options,
  systemPrompt: text,
  price: shape(bench.Price, { inputUsd: number, outputUsd: number, cachedInputUsd: number }),
  maxConcurrency: whole,
  timeoutMs: span,
  contextWindow: long,
});
const model: Reader = (value, path) => {
  const { timeoutMs: timeout, ...rest } = modelFields(value, path);
  return { ...rest, timeout };
};

/** One of these words, as the number it has in the contract. */
const oneOf =
  (numbers: Record<string, number>): Reader =>
  (value, path) => {
    const found = Object.hasOwn(numbers, String(value)) ? numbers[String(value)] : undefined;
    if (found === undefined) throw wrong(path, value, `one of ${Object.keys(numbers).join(", ")}`);
    return found;
  };

const role = oneOf({
  control: bench.SystemRole.SYSTEM_ROLE_CONTROL,
  anchor: bench.SystemRole.SYSTEM_ROLE_ANCHOR,
  direct: bench.SystemRole.SYSTEM_ROLE_DIRECT,
});

const system = located(
  shape(bench.SystemRef, {
    name: text,
    target: text,
    attached: text,
    builtin: text,
    proxy: model,
    options,
    servedName: text,
    tls: shape(bench.TlsOptions, { caPem: text, serverName: text }),
    credential: text,
    predictions: text,
    role,
    sweptOption: text,
    log: text,
  }),
  ["target", "attached", "builtin", "proxy", "predictions"],
);

const dataset = shape(bench.DatasetRef, {
  name: text,
  config: text,
  maxExamples: long,
  upload: text,
  split: text,
  shuffle: flag,
  where: texts,
  skipBadLines: flag,
  revision: text,
  mapping: texts,
  asTranscript: flag,
});

const evaluator = located(
  shape(bench.EvaluatorRef, { name: text, target: text, attached: text, options, label: text }),
  ["target", "attached"],
);

const kind = oneOf({
  process: bench.RunKind.RUN_KIND_PROCESS,
  memory: bench.RunKind.RUN_KIND_MEMORY,
});

const spec = shape(bench.RunSpec, {
  systems: list(system),
  datasets: list(dataset),
  evaluators: list(evaluator),
  metrics: list(shape(bench.MetricRef, { name: text, options })),
  rowTimeoutMs: span,
  maxConcurrency: whole,
  exposeReferenceFields: flag,
  labels: texts,
  kind,
  repeats: whole,
  maxFailures: text,
  reader: model,
  scoreField: text,
  threshold: number,
  tokenizer: text,
  textFields: list(text),
  seed: long,
  reuse: flag,
  waitTimeoutMs: span,
  replaceEvaluators: flag,
  referenceFields: list(text),
  queryBudget: long,
  questionTypes: list(text),
  prompt: shape(bench.Prompt, {
    template: text,
    systemPrompt: text,
    fewShot: whole,
    maxTokens: whole,
    plain: flag,
  }),
  budgetUsd: number,
  matchedControls: flag,
  anchors: flag,
  groupBy: list(text),
  errataUpload: text,
  labelsUpload: text,
  allowUnqualifiedJudges: flag,
  timedRows: whole,
});

/** Encode what to evaluate. Throws `InvalidSpec`, naming the field. */
export function encodeSpec(fields: RunSpec): bench.RunSpec {
  return checked(() => {
    const { rowTimeoutMs: rowTimeout, waitTimeoutMs: waitTimeout, ...rest } = spec(fields, "");
    return { ...rest, rowTimeout, waitTimeout } as bench.RunSpec;
  });
}

/** Encode which evaluators to apply. Throws `InvalidSpec`, naming the field. */
export function encodeEvaluators(refs: readonly EvaluatorRef[]): bench.EvaluatorRef[] {
  return checked(() => list(evaluator)(refs, "evaluators") as bench.EvaluatorRef[]);
}

function checked<T>(encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (error instanceof Unencodable) throw new InvalidSpec(error.message);
    throw error;
  }
}
