// Asks a daemon for a run that it does not have, and prints which error came of it.
import { readFileSync } from "node:fs";

import { BenchClient } from "../../../clients/node/dist/index.js";

const [address, token, secured, ca, milliseconds] = process.argv.slice(2);
const tls = secured ? (ca ? { ca: readFileSync(ca) } : true) : false;
try {
  const client = new BenchClient(address, { token, tls, timeoutMs: Number(milliseconds) });
  await client.get("no-such-run");
} catch (error) {
  console.log(error.constructor.name, error.reason);
}
process.exit(0);
