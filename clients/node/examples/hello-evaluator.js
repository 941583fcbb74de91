// The shortest evaluator: is the response no longer than it needs to be?
import { serve } from "cbench-client";

await serve({
  name: "brevity",
  version: "1",
  scores: { brevity: "The answer's length over the response's, at most 1." },
  requiredFields: ["answer"],
  score(original, processed) {
    if (typeof original.answer !== "string" || !processed.response) return {};
    return { brevity: Math.min(1, original.answer.length / processed.response.length) };
  },
});
