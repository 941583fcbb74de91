/** Requests to one daemon: sent, bounded, cancelled, and their errors explained. */

import type { Client, ClientReadableStream, ServiceError } from "@grpc/grpc-js";

import { asBytes, headers, openClient, type Connection } from "./channel.js";
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

/** A connection to one daemon, and what has become of it. */
export class Requests {
  hasAnswered = false;
  readonly #target: string;
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  readonly #client: Client;
  #isClosed = false;

  constructor(target: string, connection: Connection, timeoutMs: number) {
    this.#target = target;
    this.#connection = connection;
    this.#timeoutMs = timeoutMs;
    this.#client = openClient(target, connection);
  }

  close(): void {
    this.#isClosed = true;
    this.#client.close();
  }

  /** Whether to try again after an error. */
  mayWait(error: ServiceError, silenceMs: number, limitMs: number | undefined): boolean {
    if (this.#isClosed || !isLost(error)) return false;
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
    signal?.throwIfAborted();
    const stream = this.stream(path, requests, request, responses, ({ content }) => content, signal);
    try {
      for await (const piece of stream) {
        this.hasAnswered = true;
        yield piece as Buffer;
      }
    } catch (error) {
      throw this.#explained(error, signal);
    } finally {
      stream.cancel();
    }
  }

  /** Send messages, and wait for the answer to all of them. */
  async send<Q, R>(
    path: string, requests: Codec<Q>, messages: AsyncIterable<Q>, responses: Codec<R>, options: RequestOptions,
  ): Promise<R> {
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
    try {
      const response = await this.ask(path, requests, request, responses, options);
      this.hasAnswered = true;
      return response;
    } catch (error) {
      throw this.#explained(error, options.signal);
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
    return errorOf(error, this.#target, Boolean(this.#connection.token));
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
