// What a TypeScript user writes. It is compiled, not run.

import {
  attach,
  BenchClient,
  float,
  RemoteFailure,
  serve,
  type Call,
  type Evaluator,
  type Example,
  type MemorySystem,
  type OptionsOf,
  type RunSpec,
  type System,
  type Turn,
} from "cbench-client";

class Shorten implements System {
  readonly name = "shorten";
  readonly maxConcurrency = 4;

  async process(example: Example & { readonly hint?: string }, { options, signal }: Call): Promise<Example> {
    signal.throwIfAborted();
    const context: string = example.context ?? example.hint ?? "";
    const choices: string[] = example.get("choices");
    // @ts-expect-error A field whose name is misspelt.
    if (example.contxt) throw new Error("There is no such field.");
    if (choices.length === 0) throw new RemoteFailure("no choices", { reason: "EMPTY", retryable: false });
    await Promise.resolve();
    return example.with({ context: context.slice(0, Number(options["length"])), weight: float(1) });
  }
}

class Notes implements MemorySystem {
  readonly name = "notes";
  readonly #turns: Turn[] = [];

  reset(): void {
    this.#turns.length = 0;
  }

  ingest(turns: Turn[]): void {
    this.#turns.push(...turns);
  }

  query(question: string): string {
    return `${question}: ${this.#turns.length}`;
  }
}

const evaluator: Evaluator = {
  name: "same",
  scores: { same: "Whether the two are the same." },
  score: (original, processed) => ({ same: original.answer === processed.response ? 1 : 0 }),
};

const spec: RunSpec = { systems: [{ builtin: "identity" }], datasets: [{ name: "mini-qa" }], seed: 1n };

// @ts-expect-error A system is in one place.
export const two: RunSpec = { systems: [{ builtin: "identity", target: "h:1" }], datasets: [{ name: "mini-qa" }] };
// @ts-expect-error A system is somewhere.
export const none: RunSpec = { systems: [{ name: "identity" }], datasets: [{ name: "mini-qa" }] };

export async function main(): Promise<void> {
  await serve([new Shorten(), Notes, evaluator], { address: "127.0.0.1:50061" });
  await attach(function echo(example) {
    return example;
  }, { server: "127.0.0.1:50051", tls: true, token: "..." });
  const bench = new BenchClient();
  for await (const event of bench.evaluate(spec)) {
    if (event.kind === "finished") console.log(event.run.summaries[0]?.metrics["mean"]);
  }
}

const declaredOptions = {
  ratio: { type: "number", default: 0.5, minimum: 0, maximum: 1 },
  mode: { type: "text", default: "good", choices: ["fast", "good"] },
  limit: { type: "integer", nullable: true },
} as const;

export const declared: System = {
  name: "declared",
  declaredOptions,
  process(example, call: Call<OptionsOf<typeof declaredOptions>>) {
    const { ratio, mode, limit } = call.options;
    const share: number = ratio;
    const quick: boolean = mode === "fast";
    const most: number | null | undefined = limit;
    // @ts-expect-error It is a number.
    const text: string = ratio;
    return example.with({ share, quick, most: most ?? null, text, traceparent: call.traceparent ?? null });
  },
};
// @ts-expect-error There is no such type of option.
export const undeclarable: System = { name: "u", declaredOptions: { a: { type: "float" } }, process: (example) => example };

export async function compared(client: BenchClient): Promise<number> {
  const { pairs } = await client.compare("last", { baseline: "identity", effect: 0.02 });
  const { passed } = await client.gate("last", ["f1 above 0.5"]);
  return passed ? (pairs[0]?.difference.value ?? 0) : 0;
}
