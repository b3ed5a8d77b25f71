import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";

/** How much a device keeps of what its calls printed. */
export interface OutputLimits {
  /** The most bytes of one call. */
  callBytes: number;
  /** The most bytes of all calls together, on disk. */
  totalBytes: number;
  /** How long the output of an ended call is kept, in milliseconds. */
  ageMs: number;
}

/** The files of calls' outputs, within their limits. */
export interface OutputFolder {
  /** The file of a call. */
  pathOf(callId: string): string;
  /** Room for what a call prints that begins to run. */
  allot(callId: string): Allotment;
  /** Deletes what is too old. */
  prune(): void;
}

/** The room of one call. */
export interface Allotment {
  /** Takes so many more bytes; what ended calls printed goes for it, the oldest first. False: there is no room. */
  reserve(bytes: number): boolean;
  /** The call has ended: its file stays until its room is needed, or it is too old. */
  keep(): void;
  /** The call has ended, and its file is not needed. */
  remove(): void;
}

interface Kept {
  bytes: number;
  endMs: number;
}

/**
 * Opens the folder, which is made where it is missing. Every file in it is of a call that has ended by then.
 *
 * @param onError receives why a file could not be deleted.
 */
export function openOutputFolder(
  folder: string,
  limits: OutputLimits,
  { now, onError }: { now(): number; onError(error: unknown): void },
): OutputFolder {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  /** Of ended calls, by file name, the oldest first. */
  const ended = new Map<string, Kept>(filesOf(folder));
  let totalBytes = [...ended.values()].reduce((sum, { bytes }) => sum + bytes, 0);

  const unlink = (name: string): void => void rm(join(folder, name), { force: true }).catch(onError);
  const discard = (name: string): void => {
    totalBytes -= ended.get(name)?.bytes ?? 0;
    ended.delete(name);
    unlink(name);
  };
  const makeRoom = (bytes: number): boolean => {
    for (const oldest of ended.keys()) {
      if (totalBytes + bytes <= limits.totalBytes) break;
      discard(oldest);
    }
    return totalBytes + bytes <= limits.totalBytes;
  };
  const prune = (): void => {
    const before = now() - limits.ageMs;
    for (const [name, { endMs }] of ended) if (endMs < before) discard(name);
  };
  prune();
  return {
    pathOf: (callId) => join(folder, nameOf(callId)),
    allot(callId) {
      const name = nameOf(callId);
      let own = 0;
      return {
        reserve(bytes) {
          if (own + bytes > limits.callBytes || !makeRoom(bytes)) return false;
          own += bytes;
          totalBytes += bytes;
          return true;
        },
        keep: () => void ended.set(name, { bytes: own, endMs: now() }),
        remove() {
          totalBytes -= own;
          unlink(name);
        },
      };
    },
    prune,
  };
}

/** A file name that fits any call id. */
function nameOf(callId: string): string {
  return createHash("sha256").update(callId).digest("hex").slice(0, 32);
}

function filesOf(folder: string): [string, Kept][] {
  return readdirSync(folder)
    .map((name): [string, Kept] => {
      const { size, mtimeMs } = statSync(join(folder, name));
      return [name, { bytes: size, endMs: mtimeMs }];
    })
    .sort(([, a], [, b]) => a.endMs - b.endMs);
}
