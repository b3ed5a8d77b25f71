import type { Socket } from "node:net";

/** What the first bytes of a connection are read for. */
export interface FirstBytesOptions<T> {
  /** A connection of which there is nothing found by then is closed. */
  timeoutMs: number;
  /** Looks at all bytes so far. Undefined: more are needed. */
  find(bytes: Buffer): T | undefined;
  /**
   * Waits for one more turn of the event loop, because a FIN that the other end sent after these bytes is read only then, and
   * closes a connection that was given up. Not for HTTP/1.1, whose clients may send their last byte before the answer.
   */
  closesHalfOpen: boolean;
}

/** Calls back once: with what was found, and what was read put back, or with undefined where the connection ended first. */
export function readFirstBytes<T>(
  socket: Socket,
  { timeoutMs, find, closesHalfOpen }: FirstBytesOptions<T>,
  done: (found: T | undefined) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  let found: T | undefined;
  const close = (): void => void socket.destroy();
  const finish = (): void => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("end", close).off("error", close).off("close", onClose);
    done(found);
  };
  const onClose = (): void => {
    found = undefined;
    finish();
  };
  const putBack = (): void => {
    if (socket.destroyed) return;
    socket.unshift(seen);
    finish();
  };
  const onReadable = (): void => {
    if (found !== undefined) {
      // Nothing more of it is needed, but for its end to be seen.
      if (socket.readableLength === 0) socket.read();
      return;
    }
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read())
      seen = Buffer.concat([seen, chunk]);
    found = find(seen);
    if (found === undefined) return;
    if (closesHalfOpen) setImmediate(() => setImmediate(putBack));
    else putBack();
  };
  const timer = setTimeout(close, timeoutMs);
  socket.on("readable", onReadable).on("error", close).on("close", onClose);
  if (closesHalfOpen) socket.on("end", close);
}
