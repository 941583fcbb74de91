// The conformance program of the Node SDK; see cbench_server/conformance/PROGRAM.md.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

import { attach, serve } from "cbench-client";

import { evaluators } from "./evaluators.js";
import { Memory } from "./memory.js";
import { systems } from "./systems.js";

const FLAGS = ["address", "token", "tls-cert", "tls-key", "client-ca", "attach", "tls-ca", "max-in-flight"];

const pem = (path) => (path === undefined ? undefined : readFileSync(path));

async function main() {
  const options = Object.fromEntries(FLAGS.map((name) => [name, { type: "string" }]));
  const { values: flags } = parseArgs({ options });
  const offered = [...systems, Memory, ...evaluators];
  const token = flags.token;
  if (flags.attach !== undefined) {
    const tls = flags["tls-ca"] && { ca: pem(flags["tls-ca"]) };
    const most = flags["max-in-flight"];
    const maxInFlight = most === undefined ? undefined : Number(most);
    await attach(offered, { server: flags.attach, token, tls, maxInFlight });
  } else {
    const [cert, key, clientCa] = [flags["tls-cert"], flags["tls-key"], flags["client-ca"]].map(pem);
    await serve(offered, { address: flags.address, token, tls: cert && { cert, key, clientCa } });
  }
}

try {
  await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
