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
  type RunSpec,
  type System,
  type Turn,
} from "cbench-client";

class Shorten implements System {
  readonly name = "shorten";
  readonly maxConcurrency = 4;

  async process(example: Example, { options, signal }: Call): Promise<Example> {
    signal.throwIfAborted();
    const context: string = example.context;
    const choices: string[] = example.get("choices");
    if (choices.length === 0) throw new RemoteFailure("no choices", { reason: "EMPTY", retryable: false });
    await Promise.resolve();
    return example.with({ context: context.slice(0, Number(options.length)), weight: float(1) });
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

export async function main(): Promise<void> {
  await serve([new Shorten(), Notes, evaluator], { address: "127.0.0.1:50061" });
  await attach(function echo(example) {
    return example;
  }, { server: "127.0.0.1:50051", tls: true, token: "..." });
  const bench = new BenchClient();
  for await (const event of bench.evaluate(spec)) {
    if (event.kind === "finished") console.log(event.run.summaries[0]?.metrics.mean);
  }
}
