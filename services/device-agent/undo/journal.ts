import { mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { type Change, NotUndoable, type Piece, UNDO_BOUNDS, type UndoBounds } from "./change.ts";
import { createEntryWriter, openEntry, type UndoEntry } from "./entry-file.ts";

/** An entry that is being written. It counts only once it is committed. */
export interface UndoDraft {
  readonly bounds: UndoBounds;
  /** Keeps the content of one file. Rejects with NotUndoable where it is more than is kept, or with the errno of the disk. */
  keep(bytes: Uint8Array): Promise<Piece>;
  /** Resolves when the entry is on the disk: only then may what it keeps be changed. */
  commit(changes: readonly Change[]): Promise<void>;
  /** Removes what was written. Safe to repeat; without effect once it is committed. */
  discard(): Promise<void>;
}

/** Keeps, for each call that changed files, their earlier state: sealed, bounded in bytes and age. */
export interface UndoJournal extends Disposable {
  begin(callId: string): Promise<UndoDraft>;
  /** What a call changed. Undefined where nothing of it is kept, or not any more. */
  find(callId: string): Promise<UndoEntry | undefined>;
}

export interface UndoJournalOptions {
  /** A folder of the agent's own, which no tool can reach. It is made where it is missing. */
  folder: string;
  sealer: Sealer;
  /** Milliseconds since 1970. */
  now(): number;
  /** Default UNDO_BOUNDS. */
  bounds?: UndoBounds;
}

/** How often old entries are removed, in milliseconds. */
const INTERVAL_MS = 60 * 60_000;

const DRAFT = ".draft";

interface Stored {
  bytes: number;
  timeMs: number;
}

/** Opens the journal, and removes what an earlier process left unfinished and what is too old. */
export function openUndoJournal({ folder, sealer, now, bounds = UNDO_BOUNDS }: UndoJournalOptions): UndoJournal {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const stored = readStored(folder);
  const pathOf = (name: string): string => join(folder, name);
  const remove = (name: string): void => {
    stored.delete(name);
    rmSync(pathOf(name), { force: true });
  };
  const isOld = ({ timeMs }: Stored): boolean => timeMs < now() - bounds.ageMs;
  const prune = (): void => {
    let total = 0;
    for (const [name, entry] of [...stored].sort(([, a], [, b]) => b.timeMs - a.timeMs)) {
      total += entry.bytes;
      if (total > bounds.totalBytes || isOld(entry)) remove(name);
    }
  };
  prune();
  const timer = setInterval(prune, INTERVAL_MS);
  timer.unref();

  return {
    async begin(callId) {
      const name = nameOf(callId);
      const draft = pathOf(name + DRAFT);
      const file = await open(draft, "wx", 0o600);
      const writer = createEntryWriter(file, callId, sealer);
      let kept = 0;
      let closed = false;
      const close = async (): Promise<void> => {
        if (!closed) await file.close();
        closed = true;
      };
      return {
        bounds,
        async keep(bytes) {
          kept += bytes.length;
          if (kept > bounds.callBytes) throw new NotUndoable(`takes away more than ${bounds.callBytes} bytes`);
          return await writer.keep(bytes);
        },
        async commit(changes) {
          if (changes.length > bounds.callThings)
            throw new NotUndoable(`takes away more than ${bounds.callThings} files and folders`);
          const bytes = await writer.finish(changes);
          await close();
          await rename(draft, pathOf(name));
          await syncFolder(folder);
          stored.set(name, { bytes, timeMs: now() });
          prune();
        },
        async discard() {
          await close();
          await rm(draft, { force: true });
        },
      };
    },
    async find(callId) {
      const name = nameOf(callId);
      const entry = stored.get(name);
      if (entry === undefined) return undefined;
      if (!isOld(entry)) return await openEntry(pathOf(name), callId, sealer);
      remove(name);
      return undefined;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** A file's name that holds whatever the id holds. */
function nameOf(callId: string): string {
  return sha256Hex(callId);
}

function readStored(folder: string): Map<string, Stored> {
  const stored = new Map<string, Stored>();
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (name.endsWith(DRAFT)) {
      rmSync(path, { force: true });
      continue;
    }
    const { size, mtimeMs } = statSync(path);
    stored.set(name, { bytes: size, timeMs: mtimeMs });
  }
  return stored;
}

/** A rename survives a power cut only once its folder is synced. Windows cannot open folders. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const file = await open(folder, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
