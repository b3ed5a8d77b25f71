import type { EventEmitter } from "node:events";

/** Errors of callers' connections, for as long as anything holds them. */
const known = new WeakSet<object>();

/** How far the causes of an error are followed: each layer that passes one on wraps it once. */
const LONGEST_CHAIN = 8;

/**
 * Listens for an emitter's errors until it is collected. An "error" event without a listener ends the process, and
 * libraries remove their listeners while an event may still be under way: a request that was refused and whose
 * connection is then reset emits its error only after its response has closed. Nothing is lost here: the emitter is
 * destroyed when it emits, and what waits for it fails by itself.
 */
export function absorbErrors(emitter: EventEmitter): void {
  emitter.on("error", markConnectionError);
}

/** Marks an error as a caller's connection's, which cannot mean that anything of this process is broken. */
export function markConnectionError(error: unknown): void {
  if (typeof error === "object" && error !== null) known.add(error);
}

/** True for an error that was marked, and for one that wraps one that was. */
export function isConnectionError(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < LONGEST_CHAIN; depth++) {
    if (typeof current !== "object" || current === null) return false;
    if (known.has(current)) return true;
    current = (current as { cause?: unknown }).cause;
  }
  return false;
}

let counted = 0;

/** Counts an error of a connection that nothing in the process caught. Returns how many there were. */
export function countConnectionError(): number {
  return ++counted;
}

/** How many errors of connections nothing in the process caught. */
export function connectionErrorCount(): number {
  return counted;
}
