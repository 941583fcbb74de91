// A system behind a firewall: it dials the daemon, so that nothing has to be reachable.
//
// Start it with: node attached.js 127.0.0.1:50051
import { attach } from "cbench-client";

const [server = "127.0.0.1:50051"] = process.argv.slice(2);

/** Keep the first and the last half thousand characters. */
function bothEnds(example) {
  const { context } = example;
  return example.with({ context: `${context.slice(0, 500)} ${context.slice(500).slice(-500)}` });
}

await attach({ name: "both-ends", version: "1", process: bothEnds }, { server });
