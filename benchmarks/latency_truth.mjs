// What latency_truth.py asks of Node: `latency_truth.mjs loop|serve|count sleep|compute AMOUNT [NAME]`.

import { serve } from "../clients/node/dist/index.js";

const [mode, kind, given, name] = process.argv.slice(2);
const amount = Number(given);
let sum = 0;

function compute(steps) {
  for (let step = 0; step < steps; step += 1) sum = (sum + step) % 1_000_003;
}

async function work() {
  if (kind === "sleep") await new Promise((resolve) => setTimeout(resolve, amount * 1e3));
  else compute(amount);
}

async function timed(run) {
  const started = performance.now();
  await run();
  return (performance.now() - started) / 1e3;
}

if (mode === "count") {
  const taken = [];
  for (let round = 0; round < 50; round += 1) taken.push(await timed(() => compute(1e6)));
  console.log(1e6 / Math.min(...taken));
} else if (mode === "loop") {
  const taken = [];
  for (let call = 0; call < 31; call += 1) taken.push(await timed(work));
  const ordered = taken.slice(1).sort((one, other) => one - other);
  console.log((ordered[14] + ordered[15]) / 2);
} else {
  const system = {
    name,
    async process(example) {
      await work();
      return example.with({ response: example.get("question") });
    },
  };
  await serve(system, { address: "127.0.0.1:0" });
}
