/** Run specifications, from plain objects to messages. */

import type * as bench from "./gen/cbench/v1/bench.js";
import { evaluatorRefShape, runSpecShape, type EvaluatorRef, type RunSpec } from "./gen/plain.js";
import { encodePlain } from "./plain.js";

/** Encode what to evaluate. Throws `InvalidSpec`, naming the field. */
export function encodeSpec(spec: RunSpec): bench.RunSpec {
  return encodePlain(runSpecShape, spec) as bench.RunSpec;
}

/** Encode which evaluators to apply. Throws `InvalidSpec`, naming the field. */
export function encodeEvaluators(refs: readonly EvaluatorRef[]): bench.EvaluatorRef[] {
  return refs.map((ref, position) => encodePlain(evaluatorRefShape, ref, `evaluators[${position}]`) as bench.EvaluatorRef);
}
