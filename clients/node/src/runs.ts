/** Runs, rows and events as plain objects: numbers, dates and texts instead of messages. */

import { InvalidSpec } from "./errors.js";
import { decodeExample } from "./example.js";
import {
  RunState as State,
  type EvalRow,
  type ListComponentsResponse,
  type Progress as ProgressMessage,
  type Run as RunMessage,
  type RunEvent as EventMessage,
} from "./gen/cbench/v1/bench.js";
import {
  evalRowShape,
  listComponentsResponseShape,
  progressShape,
  runShape,
  runStateWords,
  type Components,
  type Progress,
  type Row as PlainRow,
  type Run as PlainRun,
  type RunState,
} from "./gen/plain.js";
import { decodePlain, wordOf } from "./plain.js";

/** One evaluation, past or present. */
export interface Run extends PlainRun {
  /** The labels of its spec. */
  readonly labels: Record<string, string>;
}

/** One system × example × repeat, scored or failed. */
export interface Row extends Omit<PlainRow, "processed"> {
  /** What the system returned; only where it was asked for. */
  readonly processed: ReturnType<typeof decodeExample> | undefined;
}

/** Something that happened in a run. New kinds may come; ignore those you do not know. */
export type RunEvent = {
  /** Position in the run, from 1; zero for progress, which is not stored. */
  readonly sequence: number;
  /** When it happened. */
  readonly createTime: Date | undefined;
} & (
  | { readonly kind: "accepted" | "finished"; readonly run: Run }
  | { readonly kind: "row"; readonly row: Row }
  | { readonly kind: "progress"; readonly progress: Progress }
  | { readonly kind: "state"; readonly state: RunState; readonly reason: string }
);

/** The number of a state. */
export function encodeState(state: RunState): State {
  if (state !== "unspecified" && Object.hasOwn(runStateWords, state)) return runStateWords[state];
  const known = Object.keys(runStateWords).filter((word) => word !== "unspecified");
  throw new InvalidSpec(`there is no state "${state}". Known: ${known.join(", ")}.`);
}

/** Whether a run in this state goes no further. */
export function isFinal(state: RunState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

/** Decode a run. */
export function decodeRun(message: RunMessage): Run {
  const run = decodePlain(runShape, message) as unknown as PlainRun;
  return { ...run, progress: decodeProgress(message.progress), labels: run.spec?.labels ?? {} };
}

function decodeProgress(message: ProgressMessage | undefined): Progress {
  const unset = { completedRows: 0, failedRows: 0, totalRows: undefined, systems: [] };
  return message === undefined ? unset : (decodePlain(progressShape, message) as unknown as Progress);
}

/** Decode a row. */
export function decodeRow(message: EvalRow): Row {
  const { processed } = message;
  return {
    ...(decodePlain(evalRowShape, message) as unknown as PlainRow),
    processed: processed.size > 0 ? decodeExample({ id: undefined, fields: processed }) : undefined,
  };
}

/** Decode what a run may name. */
export function decodeComponents(message: ListComponentsResponse): Components {
  return decodePlain(listComponentsResponseShape, message) as unknown as Components;
}

/** Decode an event, undefined for a kind this version does not know. */
export function decodeEvent({ sequence: position, createTime, kind }: EventMessage): RunEvent | undefined {
  const head = { sequence: Number(position), createTime };
  switch (kind?.$case) {
    case "accepted":
    case "finished":
      return { ...head, kind: kind.$case, run: decodeRun(kind.value) };
    case "row":
      return { ...head, kind: "row", row: decodeRow(kind.value) };
    case "progress":
      return { ...head, kind: "progress", progress: decodeProgress(kind.value) };
    case "stateChange": {
      const { state, reason } = kind.value;
      return { ...head, kind: "state", state: wordOf(runStateWords, state), reason };
    }
    case undefined:
      return undefined;
  }
}
