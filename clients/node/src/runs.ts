/** Runs, rows and events as plain objects: numbers, dates and texts instead of messages. */

import { InvalidSpec, type RemoteFailure } from "./errors.js";
import { decodeExample, decodeId, type Example } from "./example.js";
import {
  RunState as State,
  type EvalRow,
  type Progress as ProgressMessage,
  type Run as RunMessage,
  type RunEvent as EventMessage,
} from "./gen/cbench/v1/bench.js";
import type { Duration } from "./gen/google/protobuf/duration.js";
import { decodeFailure, decodeUsage, millisecondsOf, type Usage } from "./messages.js";
import { decodeFields, type Fields } from "./values.js";

/** The life of a run. The last three are final, unless the run is resumed. */
export type RunState = "queued" | "running" | "waiting" | "succeeded" | "failed" | "cancelled";

/** How far a run has come. */
export interface Progress {
  readonly completedRows: number;
  readonly failedRows: number;
  /** Undefined until the datasets have been counted. */
  readonly totalRows: number | undefined;
}

/** The aggregates of one system. */
export interface Summary {
  readonly system: string;
  /** Values by metric key; one without a value is left out. */
  readonly metrics: Record<string, number>;
}

/** One evaluation, past or present. */
export interface Run {
  readonly runId: string;
  readonly state: RunState;
  readonly createTime: Date | undefined;
  readonly endTime: Date | undefined;
  readonly progress: Progress;
  readonly summaries: Summary[];
  /** Why the run as a whole failed. */
  readonly failure: RemoteFailure | undefined;
  /** What it waits for, while it is waiting. */
  readonly waitingReason: string;
  readonly labels: Record<string, string>;
  /** Everything needed to repeat the run. */
  readonly config: Fields;
  /** The sequence of its last stored event. */
  readonly lastSequence: number;
}

/** One system × example × repeat, scored or failed. */
export interface Row {
  readonly system: string;
  readonly dataset: string;
  readonly exampleId: string | number | bigint | undefined;
  readonly index: number;
  readonly repeat: number;
  readonly scores: Record<string, number>;
  /** The score that counts for this row. */
  readonly primaryScore: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly contextTokensIn: number | undefined;
  readonly contextTokensOut: number | undefined;
  readonly latencyMs: number | undefined;
  readonly usage: Usage | undefined;
  readonly attempts: number;
  /** Why there are no scores. */
  readonly failure: RemoteFailure | undefined;
  readonly metadata: Fields;
  /** What the system returned; only where it was asked for. */
  readonly processed: Example | undefined;
  /** The original example; only where it was asked for. */
  readonly original: Example | undefined;
}

/** Something that happened in a run. New kinds may come; ignore those you do not know. */
export type RunEvent = {
  /** Position in the run, from 1; zero for progress, which is not stored. */
  readonly sequence: number;
} & (
  | { readonly kind: "accepted" | "finished"; readonly run: Run }
  | { readonly kind: "row"; readonly row: Row }
  | { readonly kind: "progress"; readonly progress: Progress }
  | { readonly kind: "state"; readonly state: RunState; readonly reason: string }
);

const STATES = new Map<RunState, State>([
  ["queued", State.RUN_STATE_QUEUED],
  ["running", State.RUN_STATE_RUNNING],
  ["waiting", State.RUN_STATE_WAITING],
  ["succeeded", State.RUN_STATE_SUCCEEDED],
  ["failed", State.RUN_STATE_FAILED],
  ["cancelled", State.RUN_STATE_CANCELLED],
]);

/** The number of a state. */
export function encodeState(state: RunState): State {
  const found = STATES.get(state);
  if (found !== undefined) return found;
  throw new InvalidSpec(`there is no state "${state}". Known: ${[...STATES.keys()].join(", ")}.`);
}

/** Whether a run in this state goes no further. */
export function isFinal(state: RunState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

function decodeState(state: State): RunState {
  const found = [...STATES].find(([, number]) => number === state);
  return found?.[0] ?? "queued";
}

function decodeProgress(message: ProgressMessage | undefined): Progress {
  return {
    completedRows: Number(message?.completedRows ?? 0),
    failedRows: Number(message?.failedRows ?? 0),
    totalRows: message?.totalRows === undefined ? undefined : Number(message.totalRows),
  };
}

/** Decode a run. */
export function decodeRun(message: RunMessage): Run {
  return {
    runId: message.runId,
    state: decodeState(message.state),
    createTime: message.createTime,
    endTime: message.endTime,
    progress: decodeProgress(message.progress),
    summaries: message.summaries.map(({ system, metrics }) => ({ system, metrics: sorted(metrics) })),
    failure: message.failure && decodeFailure(message.failure),
    waitingReason: message.waitingReason,
    labels: sorted(message.spec?.labels ?? new Map<string, string>()),
    config: decodeFields(message.config),
    lastSequence: Number(message.lastSequence),
  };
}

/** Decode a row. */
export function decodeRow(message: EvalRow): Row {
  return {
    system: message.system,
    dataset: message.dataset,
    exampleId: message.exampleId && decodeId(message.exampleId),
    index: Number(message.index),
    repeat: message.repeat,
    scores: sorted(message.scores),
    primaryScore: message.primaryScore,
    inputTokens: Number(message.inputTokens),
    outputTokens: Number(message.outputTokens),
    contextTokensIn: optional(message.contextTokensIn),
    contextTokensOut: optional(message.contextTokensOut),
    latencyMs: spanOf(message.latency),
    usage: message.usage && decodeUsage(message.usage),
    attempts: message.attempts,
    failure: message.failure && decodeFailure(message.failure),
    metadata: decodeFields(message.metadata),
    processed: message.processed.size > 0 ? decodeExample({ id: undefined, fields: message.processed }) : undefined,
    original: message.original && decodeExample(message.original),
  };
}

/** Decode an event, undefined for a kind this version does not know. */
export function decodeEvent({ sequence: position, kind }: EventMessage): RunEvent | undefined {
  const sequence = Number(position);
  switch (kind?.$case) {
    case "accepted":
    case "finished":
      return { sequence, kind: kind.$case, run: decodeRun(kind.value) };
    case "row":
      return { sequence, kind: "row", row: decodeRow(kind.value) };
    case "progress":
      return { sequence, kind: "progress", progress: decodeProgress(kind.value) };
    case "stateChange": {
      const { state, reason } = kind.value;
      return { sequence, kind: "state", state: decodeState(state), reason };
    }
    case undefined:
      return undefined;
  }
}

function sorted<T>(map: Map<string, T>): Record<string, T> {
  return Object.fromEntries([...map].sort(([one], [other]) => (one < other ? -1 : 1)));
}

function optional(count: bigint | undefined): number | undefined {
  return count === undefined ? undefined : Number(count);
}

function spanOf(span: Duration | undefined): number | undefined {
  return span && millisecondsOf(span);
}
