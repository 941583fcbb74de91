// The evaluators that PROGRAM.md describes.

import { RemoteFailure } from "cbench-client";

import { conformancePanic, hold } from "./probe.js";

function compare(original, processed, { options, traceparent, tracestate }) {
  const details = traceparent === undefined ? { options } : { options, traceparent, tracestate };
  if (processed.has("value")) details.value = processed.value;
  if (original.has("id")) details.original_id = original.id;
  if (!original.has("answer")) return { scores: {}, details };
  const exact = processed.response === original.answer ? 1 : 0;
  return { scores: { exact }, explanation: "compared", details };
}

export const evaluators = [
  {
    name: "conformance-score",
    version: "1.0",
    description: "Scores as it is told.",
    maxConcurrency: 16,
    scores: { exact: "Whether the response is the answer.", distance: "How far it is." },
    lowerIsBetter: ["distance"],
    worst: { distance: 100 },
    requiredFields: ["answer"],
    async score(original, processed, call) {
      const { command, reason, message, key } = processed;
      switch (command) {
        case "scores":
          return { scores: processed.scores };
        case "fail":
          throw new RemoteFailure(message, { reason });
        case "error":
          throw new Error(message);
        case "panic":
          return conformancePanic(message);
        case "hold":
          await hold(key, call.signal);
          return { exact: 1 };
        default:
          return compare(original, processed, call);
      }
    },
  },
  {
    name: "conformance-plain",
    version: "1.0",
    description: "Takes no options.",
    scores: { one: "Always one." },
    score: (original, processed) => ({ one: original && processed ? 1 : 0 }),
  },
];
