/**
 * Serve a system to cbench-server, or drive it, from JavaScript and TypeScript.
 *
 * Serve any object with a `name` and a `process` method:
 *
 *     import { serve } from "cbench-client";
 *     await serve(mySystem, { address: "127.0.0.1:50061" });
 *
 * @packageDocumentation
 */

export type { Assessment, Evaluator, Scores, System } from "./adapters.js";
export { attach, Attachment, type AttachOptions } from "./attachment.js";
export { BenchClient, type FollowOptions } from "./bench.js";
export type { Call, MemoryCall, Settings } from "./calls.js";
export type { Connection, Tls } from "./channel.js";
export type { DeclaredOption, DeclaredOptions, OptionsOf, TakesOptions } from "./declared.js";
export {
  CannotServe,
  ClientError,
  InsecureToken,
  InvalidSpec,
  NotServable,
  Refused,
  RemoteFailure,
  Unencodable,
  Unreachable,
  type FailureDetails,
  type FieldViolation,
  type Origin,
} from "./errors.js";
export { Example } from "./example.js";
export type { HostOptions, Offered } from "./host.js";
export type { Answered, Ingested, MemoryFactory, MemorySystem } from "./memory.js";
export type { Turn, Usage } from "./messages.js";
export type { About } from "./about.js";
export type {
  Comparison,
  Components,
  DatasetInfo,
  DatasetRef,
  EvaluatorInfo,
  EvaluatorNote,
  EvaluatorRef,
  Gated,
  MetricInfo,
  MetricRef,
  ModelRef,
  OptionInfo,
  PairedDifference,
  PolicyCheck,
  Progress,
  Prompt,
  Pruned,
  PrunedRun,
  RunNote,
  RunSpec,
  RunState,
  Summary,
  SystemInfo,
  SystemRef,
} from "./gen/plain.js";
export type { Row, Run, RunEvent } from "./runs.js";
export type { RequestOptions } from "./requests.js";
export { serve, Server, type ServeOptions, type ServerTls } from "./server.js";
export { float, Float, type Fields, type Value } from "./values.js";
