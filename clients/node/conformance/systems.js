// The systems that PROGRAM.md describes.

import { float, RemoteFailure } from "cbench-client";

import { conformancePanic, hold, probe } from "./probe.js";

const version = "1.0";

const held = async (example, { signal }) => ({
  response: await hold(example.key, signal, example.milliseconds),
  key: example.key,
});

function copy(example, { options }) {
  const copies = [...example.entries()].map(([name, value]) => [`copy.${name}`, value]);
  const settings = Object.entries(options).map(([name, value]) => [`option.${name}`, value]);
  return Object.fromEntries([...copies, ...settings]);
}

function tell(example) {
  const seen = probe(example.key);
  if (example.release === true) seen.release();
  const { started, running, most, ended, cancelled } = seen;
  return { started, running, most, ended, cancelled };
}

function fail(example) {
  const { reason, message, retryable = false, retry_delay_ms: retryDelayMs } = example;
  throw new RemoteFailure(message, { reason, retryable, retryDelayMs });
}

function nest(levels) {
  let deep = [];
  for (let level = 1; level < levels; level += 1) deep = [deep];
  return deep;
}

function answer({ role, content, ...rest }, position, instruction) {
  const { time, session, ...kept } = rest;
  const told = instruction === "" ? {} : { instruction };
  return { ...kept, role: "assistant", content: `${position + 1}: ${content}`, ...told };
}

export const systems = [
  {
    name: "conformance-echo",
    description: "Returns the example with a response.",
    process: (example) => example.with({ response: "echo" }),
  },
  { name: "conformance-copy", description: "Copies every field.", process: copy },
  {
    name: "conformance-report",
    description: "Reports what it knows of the call.",
    process: (example, { callId, remainingMs, instruction, traceparent = "", tracestate = "" }) => ({
      call_id: callId,
      instruction,
      traceparent,
      tracestate,
      remaining_ms: remainingMs === undefined ? null : Math.floor(remainingMs),
    }),
  },
  { name: "conformance-hold", maxConcurrency: 64, description: "Waits to be released.", process: held },
  {
    name: "conformance-limited",
    maxConcurrency: 2,
    description: "Waits to be released, two at a time.",
    process: held,
  },
  { name: "conformance-probe", description: "Tells what happened under a key.", process: tell },
  { name: "conformance-fail", description: "Fails as it is told.", process: fail },
  {
    name: "conformance-error",
    description: "Raises an ordinary error.",
    process: (example) => {
      throw new Error(example.message);
    },
  },
  {
    name: "conformance-panic",
    description: "Panics.",
    process: (example) => conformancePanic(example.message),
  },
  {
    name: "conformance-deep",
    description: "Nests lists.",
    process: (example) => ({ deep: nest(example.levels) }),
  },
  {
    name: "conformance-large",
    description: "Returns a large text.",
    process: (example) => ({ context: "x".repeat(Number(example.size)) }),
  },
  {
    name: "conformance-usage",
    description: "Reports usage.",
    process: () => ({
      response: "used",
      api_usage: {
        cached_prompt_tokens: 7,
        requests: 3,
        abandoned_requests: 1,
        prompt_tokens: 9007199254740993n,
        completion_tokens: 0,
        cost_usd: 0.25,
        compute_seconds: 1.5,
      },
    }),
  },
  {
    name: "conformance-options",
    description: "Takes the options that it declares.",
    declaredOptions: {
      k: { type: "integer", required: true },
      ratio: { type: "number", default: 0.5, minimum: 0, maximum: 1, description: "The share to keep." },
      mode: { type: "text", default: "good", choices: ["fast", "good"] },
      limit: { type: "integer", default: 3, nullable: true },
    },
    process: (example, { options }) => ({ ...options, ratio: float(options.ratio) }),
  },
  {
    name: "conformance-chat",
    description: "Answers conversations.",
    process: () => ({ response: "process" }),
    processConversation: (turns, { instruction }) =>
      turns.map((turn, position) => answer(turn, position, instruction)),
  },
].map((system) => ({ version, ...system }));
