// The memory system that PROGRAM.md describes.

import { RemoteFailure } from "cbench-client";

import { conformancePanic, hold } from "./probe.js";

async function obey(text, signal) {
  if (text === "fail") throw new RemoteFailure("told to fail", { reason: "CONFORMANCE" });
  if (text === "panic") conformancePanic("told to panic");
  if (text.startsWith("hold:")) await hold(text.slice("hold:".length), signal);
}

function asMap({ role, content, speaker = null, time = null, session = null, ...fields }) {
  return { role, content, speaker, time, session, fields };
}

const bytesOf = (turns) => turns.reduce((sum, turn) => sum + Buffer.byteLength(turn.content), 0);

/** One scope of it: the SDK makes an object for each. */
export class Memory {
  name = "conformance-memory";
  version = "1.0";
  description = "Remembers turns.";
  maxConcurrency = 16;
  #turns = [];
  #ingests = 0;

  reset() {
    this.#turns = [];
    this.#ingests = 0;
  }

  async ingest(turns, { signal }) {
    for (const turn of turns) await obey(turn.content, signal);
    this.#turns.push(...turns);
    this.#ingests += 1;
    return { usage: { prompt_tokens: turns.length }, storedBytes: bytesOf(this.#turns) };
  }

  async query(question, { signal, budget = null, askedAt = null, instruction, traceparent = "", tracestate = "" }) {
    await obey(question, signal);
    const turns = this.#turns;
    const last = turns.length > 0 ? asMap(turns.at(-1)) : null;
    return {
      response: String(turns.length),
      context: turns.map((turn) => turn.content).join("\n"),
      contextTokens: turns.length,
      storedBytes: bytesOf(turns),
      retrievalMs: 250,
      usage: { prompt_tokens: 3 },
      metadata: {
        ingests: this.#ingests,
        question,
        budget,
        asked_at: askedAt,
        instruction,
        traceparent,
        tracestate,
        last,
      },
    };
  }
}
