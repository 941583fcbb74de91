// Drive a daemon: compare two built-in systems, follow the run, and print its table.
//
// Start it with: node follow-a-run.js 127.0.0.1:50051
import { BenchClient } from "cbench-client";

const [target = "127.0.0.1:50051"] = process.argv.slice(2);
const bench = new BenchClient(target);

const spec = {
  systems: [{ builtin: "identity" }, { builtin: "truncate-tail", options: { ratio: 0.3 } }],
  datasets: [{ name: "mini-qa", maxExamples: 10 }],
  labels: { example: "follow-a-run" },
};

try {
  for await (const event of bench.evaluate(spec)) {
    if (event.kind === "row") {
      const { system, exampleId, primaryScore, scores } = event.row;
      console.log(`${system}  ${exampleId}  ${primaryScore} ${scores[primaryScore]}`);
    } else if (event.kind === "finished") {
      const { runId, state, summaries } = event.run;
      console.log(`run ${runId} ${state}`);
      console.table(Object.fromEntries(summaries.map(({ system, metrics }) => [system, metrics])));
    }
  }
  const { scores } = await bench.score("answer-quality", { answer: "Oslo" }, { response: "It is Oslo." });
  console.log("answer-quality on its own:", scores);
} finally {
  bench.close();
}
