import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { dirname } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { heldAddress, until, Wire } from "./support/wire.js";

/** Start a program that serves, and end it with the test. */
async function started(t, source, { args = [], env = {} } = {}) {
  const command = ["--input-type=module", "--eval", `import { serve } from "cbench-client";\n${source}`, "--", ...args];
  const child = spawn(process.execPath, command, { env: { ...process.env, ...env }, cwd: dirname(fileURLToPath(import.meta.url)) });
  t.after(() => child.kill("SIGKILL"));
  const program = { child, out: [], err: [], exit: once(child, "exit") };
  createInterface(child.stdout).on("line", (line) => program.out.push(line));
  createInterface(child.stderr).on("line", (line) => program.err.push(line));
  await until(() => program.err.some((line) => line.startsWith("serving ")));
  program.address = program.err.find((line) => line.startsWith("serving ")).split(" on ")[1];
  return program;
}

test("on port 0 the handshake is the only line on stdout, even if user code prints", async (t) => {
  const source = `await serve({ name: "loud", process: (e) => { console.log("hello"); process.stdout.write("x\\n"); return e; } });`;
  const program = await started(t, source);
  await until(() => program.out.length > 0);
  await new Wire(t, program.address).process({ a: 1 });
  program.child.kill("SIGTERM");
  assert.deepEqual(await program.exit, [0, null]);
  assert.deepEqual(program.out, [`cbench|1|tcp|${program.address}`]);
  assert.ok(program.err.includes("hello") && program.err.includes("x"));
});

test("SIGTERM lets the call in progress finish, then the process ends with 0", async (t) => {
  const source = `await serve({ name: "slow", process: async () => {
    console.error("begun");
    await new Promise((resolve) => process.once("SIGTERM", () => setTimeout(resolve, 50)));
    return { response: "finished" };
  } });`;
  const program = await started(t, source);
  const call = new Wire(t, program.address).process({});
  await until(() => program.err.includes("begun"));
  program.child.kill("SIGTERM");
  assert.deepEqual((await call).fields, { response: "finished" });
  assert.deepEqual(await program.exit, [0, null]);
});

test("an error thrown outside of any call is printed and ends nothing", async (t) => {
  const source = `await serve({ name: "stray", process: (example) => {
    setTimeout(() => { throw new Error("from a timer"); });
    void Promise.reject(new Error("from a promise"));
    return example;
  } });`;
  const program = await started(t, source);
  const wire = new Wire(t, program.address);
  await wire.process({ a: 1 });
  await until(() => ["timer", "promise"].every((word) => program.err.some((line) => line.includes(`from a ${word}`))));
  await wire.process({ a: 2 });
});

test("with a given port the handshake comes only if it is asked for", async (t) => {
  const source = `const address = process.argv[1];
    await serve({ name: "echo", process: (example) => example }, { address });`;
  const address = await heldAddress(t);
  const quiet = await started(t, source, { args: [address], env: { CBENCH_HANDSHAKE: "" } });
  quiet.child.kill("SIGTERM");
  await quiet.exit;
  assert.deepEqual(quiet.out, []);
  const asked = await started(t, source, { args: [address], env: { CBENCH_HANDSHAKE: "1" } });
  await until(() => asked.out.length > 0);
  assert.deepEqual(asked.out, [`cbench|1|tcp|${address}`]);
});
