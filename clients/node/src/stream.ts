/** Messages of a stream, read no faster than they are dealt with. */

import type { Readable } from "node:stream";

/**
 * Hand every message to `onMessage`, and read on when it is done with it.
 *
 * Resolves when the peer has sent its last message, and rejects with what ended
 * the stream before: its own error, or what `onMessage` threw.
 */
export function consume(stream: Readable, onMessage: (data: Buffer) => Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.on("data", (data: Buffer) => {
      stream.pause();
      onMessage(data).then(() => stream.resume(), reject);
    });
    stream.on("end", resolve);
    stream.on("error", reject);
    stream.on("close", () => { reject(new Error("it was closed")); });
  });
}
