/** Requests to one daemon: sent, bounded, cancelled, and their errors explained. */

import type { Client, ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import { addressesOf, asBytes, headers, openClient, type Connection } from "./channel.js";
import type { ClientError } from "./errors.js";
import { decodeMessage } from "./messages.js";
import { errorOf, findsNobody, isLost, isStatus } from "./status.js";

/** How long a first contact that breaks off, unlike one that finds no daemon, is tried again. */
const FIRST_CONTACT_MS = 10_000;

/** A message type, as the generated code has it. */
export interface Codec<T> {
  decode(input: never): T;
  encode(message: T): { finish(): Uint8Array };
}

/** How to make a request. */
export interface RequestOptions {
  /** Ends the request, which then throws the signal's reason. A run that was started goes on. */
  signal?: AbortSignal | undefined;
}

/** Done a second time these would find nothing left to do, and say so. */
const NOT_REPEATED = /\/(DeleteRun|PruneRuns)$/;

/** A connection to one daemon, or to the first of several that answers, and what has become of it. */
export class Requests {
  hasAnswered = false;
  readonly #addresses: readonly string[];
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  readonly #clients: readonly Client[];
  #place = 0;
  /** How many daemons were lost since one last answered. */
  #lost = 0;
  #isClosed = false;

  constructor(target: string, connection: Connection, timeoutMs: number) {
    this.#addresses = addressesOf(target);
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
    this.#clients = this.#addresses.map((address) => openClient(address, connection));
  }

  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients) client.close();
  }

  get #client(): Client {
    return this.#clients[this.#place] as Client;
  }

  /** Note an answer. */
  #answered(): void {
    this.hasAnswered = true;
    this.#lost = 0;
  }

  /** Go on to the next daemon if this one is lost; tell whether it is worth a try. */
  #isAnotherLeft(error: unknown): boolean {
    if (this.#clients.length === 1 || this.#isClosed || !isStatus(error) || !isLost(error)) return false;
    this.#place = (this.#place + 1) % this.#clients.length;
    this.#lost += 1;
    if (this.#lost < this.#clients.length) return true;
    this.#lost = 0;
    return false;
  }

  /** Find the first of several daemons that answers, for what cannot be sent twice. */
  async #reach(): Promise<void> {
    for (let tries = this.#clients.length; tries > 1; tries -= 1) {
      const error = await new Promise<unknown>((resolve) => {
        const deadline = Date.now() + this.#timeoutMs;
        this.#client.makeUnaryRequest(
          "/grpc.health.v1.Health/Check", asBytes, asBytes, Buffer.alloc(0), headers(this.#connection), { deadline }, resolve,
        );
      });
      if (!this.#isAnotherLeft(error)) break;
    }
    this.#lost = 0;
  }

  /** Whether to try again after an error. */
  mayWait(error: ServiceError, silenceMs: number, limitMs: number | undefined): boolean {
    if (this.#isClosed || !isLost(error)) return false;
    if (this.#isAnotherLeft(error)) return limitMs === undefined || silenceMs < limitMs;
    if (this.hasAnswered) return limitMs === undefined || silenceMs < limitMs;
    return !findsNobody(error) && silenceMs < Math.min(FIRST_CONTACT_MS, limitMs ?? FIRST_CONTACT_MS);
  }

  /** Open a stream of answers; `take` is what each message is read as. */
  stream<Q, R, T>(
    path: string,
    requests: Codec<Q>,
    request: Q,
    responses: Codec<R>,
    take: (message: R) => T,
    signal: AbortSignal | undefined,
  ): ClientReadableStream<T> {
    const stream = this.#client.makeServerStreamRequest(
      path,
      (message: Q) => asBytes(requests.encode(message).finish()),
      (data: Buffer) => take(decodeMessage(responses as { decode(input: unknown): R }, data)),
      request,
      headers(this.#connection),
    );
    cancelWith(stream, signal);
    return stream;
  }

  /** Read a file, in pieces. */
  async *pieces<Q>(
    path: string, requests: Codec<Q>, request: Q, responses: Codec<{ content: Buffer }>, { signal }: RequestOptions,
  ): AsyncGenerator<Buffer> {
    for (let hasBegun = false; ; ) {
      signal?.throwIfAborted();
      const stream = this.stream(path, requests, request, responses, ({ content }) => content, signal);
      try {
        for await (const piece of stream) {
          hasBegun = true;
          this.#answered();
          yield piece as Buffer;
        }
        return;
      } catch (error) {
        const explained = this.#explained(error, signal);
        if (hasBegun || !this.#isAnotherLeft(error)) throw explained;
      } finally {
        stream.cancel();
      }
    }
  }

  /** Send messages, and wait for the answer to all of them. */
  async send<Q, R>(
    path: string, requests: Codec<Q>, messages: AsyncIterable<Q>, responses: Codec<R>, options: RequestOptions,
  ): Promise<R> {
    await this.#reach();
    let settle: (error: ServiceError | null, data?: Buffer) => void = () => {};
    const answer = new Promise<Buffer>((resolve, reject) => {
      settle = (error, data) => { if (error) reject(this.error(error)); else resolve(data as Buffer); };
    }).catch((error: unknown) => {
      options.signal?.throwIfAborted();
      throw error;
    });
    answer.catch(() => {});
    const sending = this.#client.makeClientStreamRequest<Buffer, Buffer>(
      path, asBytes, asBytes, headers(this.#connection), settle,
    );
    cancelWith(sending, options.signal);
    // Its error comes through the answer, too.
    sending.on("error", () => {});
    try {
      for await (const message of messages) {
        options.signal?.throwIfAborted();
        const data = asBytes(requests.encode(message).finish());
        const written = new Promise<void>((resolve) => sending.write(data, () => { resolve(); }));
        // A stream that has ended does not always say that it took no more.
        await Promise.race([written, answer]);
      }
    } catch (error) {
      sending.cancel();
      throw error;
    }
    sending.end();
    return decodeMessage(responses as { decode(input: unknown): R }, await answer);
  }

  /** Make a request, and throw what its error means. */
  async unary<Q, R>(
    path: string, requests: Codec<Q>, request: Q, responses: Codec<R>, options: RequestOptions,
  ): Promise<R> {
    for (;;) {
      try {
        const response = await this.ask(path, requests, request, responses, options);
        this.#answered();
        return response;
      } catch (error) {
        const explained = this.#explained(error, options.signal);
        const isSafe = !NOT_REPEATED.test(path) || (isStatus(error) && findsNobody(error));
        if (!this.#isAnotherLeft(error) || !isSafe) throw explained;
      }
    }
  }

  /** Make a request, and throw its status. */
  ask<Q, R>(
    path: string, requests: Codec<Q>, request: Q, responses: Codec<R>, { signal }: RequestOptions,
  ): Promise<R> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const call = this.#client.makeUnaryRequest(
        path,
        (message: Q) => asBytes(requests.encode(message).finish()),
        (data: Buffer) => decodeMessage(responses as { decode(input: unknown): R }, data),
        request,
        headers(this.#connection),
        { deadline: Date.now() + this.#timeoutMs },
        (error, response) => { if (error) reject(error); else resolve(response as R); },
      );
      cancelWith(call, signal);
    });
  }

  /** Say what a status means. */
  error(error: ServiceError): ClientError {
    return errorOf(error, this.#addresses[this.#place] as string, Boolean(this.#connection.token));
  }

  #explained(error: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted) return signal.reason;
    return isStatus(error) ? this.error(error) : error;
  }
}

/** Cancel a call when a signal says so, as long as the call lasts. */
function cancelWith(
  call: { cancel(): void; once(event: "status", listener: () => void): unknown },
  signal: AbortSignal | undefined,
): void {
  if (signal === undefined) return;
  const cancel = (): void => { call.cancel(); };
  signal.addEventListener("abort", cancel, { once: true });
  call.once("status", () => { signal.removeEventListener("abort", cancel); });
  if (signal.aborted) cancel();
}
