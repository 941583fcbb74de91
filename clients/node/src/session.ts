/** One connection of an attachment: calls come in, results go out, until either side ends it. */

import type { ClientDuplexStream } from "@grpc/grpc-js";

import { Refused, RemoteFailure } from "./errors.js";
import { AttachRequest, AttachResponse, CallResult, type Call } from "./gen/cbench/v1/gateway.js";
import { shuttingDown, type Host } from "./host.js";
import { Lane, type EncodeOutcome } from "./lane.js";
import { decodeMessage, emptyMessage, encodeFailure } from "./messages.js";
import { messageOf } from "./about.js";
import { consume } from "./stream.js";

const RESULTS_FIELD = 2;

/** One connection of an attachment, from its hello to its end. */
export class Session {
  readonly #stream: ClientDuplexStream<Buffer, Buffer>;
  readonly #limit: number;
  readonly #lane: Lane;
  readonly #onMessage: (message: AttachResponse) => void;
  #isDraining = false;

  constructor(
    host: Host,
    stream: ClientDuplexStream<Buffer, Buffer>,
    limit: number,
    onMessage: (message: AttachResponse) => void,
  ) {
    this.#stream = stream;
    this.#limit = limit;
    this.#onMessage = onMessage;
    this.#lane = new Lane(host, stream, RESULTS_FIELD, encodeResult);
    this.#put({ hello: host.hello(limit) });
  }

  /** Answer calls until either side ends the stream. Throws what ended it early. */
  async run(): Promise<void> {
    const reading = consume(this.#stream, (data) => this.#receive(data));
    void this.#lane.send().then(() => { this.#stream.end(); });
    try {
      await reading;
    } finally {
      this.abandon();
    }
  }

  /** Drop what is still in progress: the daemon asks again. */
  abandon(): void {
    this.#lane.abandon();
    this.#stream.cancel();
  }

  /** Take no more calls, and end the stream when those held are answered. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#put({ drain: { reason: "the process ends" } });
    this.#lane.close();
  }

  #put(parts: Partial<AttachRequest>): void {
    this.#lane.putMessage(AttachRequest.encode({ ...emptyMessage(AttachRequest), ...parts }).finish());
  }

  async #receive(data: Buffer): Promise<void> {
    let message: AttachResponse;
    try {
      message = decodeMessage(AttachResponse, data);
    } catch (error) {
      const text = `the daemon sent what is not an AttachResponse: ${messageOf(error)}`;
      throw new Refused(text, "INTERNAL");
    }
    this.#onMessage(message);
    for (const call of message.calls) this.#start(call);
    for (const callId of message.cancelCallIds) this.#lane.cancel(callId);
    if (message.drain !== undefined) this.#lane.close();
    await this.#lane.backlogWritten();
  }

  #start({ callId, timeout, traceparent, tracestate, work }: Call): void {
    if (work === undefined) {
      const text = "this SDK does not know the work asked for; update cbench-client";
      const failure = new RemoteFailure(text, { reason: "UNIMPLEMENTED" });
      this.#lane.fail({ callId, kind: "process" }, failure);
      return;
    }
    const kind = work.$case;
    if (this.#isDraining) {
      this.#lane.fail({ callId, kind }, shuttingDown());
    } else if (this.#lane.held >= this.#limit) {
      const text = `more than the ${this.#limit} calls in flight that were announced`;
      const failure = new RemoteFailure(text, { reason: "RESOURCE_EXHAUSTED", retryable: true });
      this.#lane.fail({ callId, kind }, failure);
    } else {
      if (work.$case === "ingest") work.value.callId ||= callId;
      this.#lane.start({ kind, request: work.value, callId, timeout, traceparent, tracestate });
    }
  }
}

const encodeResult: EncodeOutcome = (callId, kind, outcome) => {
  const result =
    outcome instanceof RemoteFailure
      ? { $case: "failure", value: encodeFailure(outcome) }
      : { $case: kind, value: outcome };
  // The kind of a call decides which response it gets.
  return CallResult.encode({ callId, result: result as CallResult["result"] }).finish();
};
