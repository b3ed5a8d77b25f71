import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import type { Change, Piece } from "./change.ts";

const { O_RDONLY, O_NOFOLLOW } = constants;

/** At the end of the file: the length of the sealed list of changes. */
const LENGTH_BYTES = 4;

/** Writes an entry: the kept contents one after the other, then the list of changes, all sealed under the call's id. */
export function createEntryWriter(file: FileHandle, callId: string, sealer: Sealer) {
  let size = 0;
  const append = async (name: string, bytes: Uint8Array): Promise<Piece> => {
    const sealed = sealer.seal(`undo/${callId}/${name}`, bytes);
    const piece = { at: size, length: sealed.length };
    await file.appendFile(sealed);
    size += sealed.length;
    return piece;
  };
  return {
    keep: (bytes: Uint8Array): Promise<Piece> => append(String(size), bytes),
    /** Resolves with the file's size, when it is on the disk. */
    async finish(changes: readonly Change[]): Promise<number> {
      const { length } = await append("changes", Buffer.from(JSON.stringify(changes)));
      const trailer = Buffer.alloc(LENGTH_BYTES);
      trailer.writeUInt32BE(length);
      await file.appendFile(trailer);
      await file.sync();
      return size + LENGTH_BYTES;
    },
  };
}

/** What a call changed, and the earlier state of it. */
export interface UndoEntry extends AsyncDisposable {
  readonly changes: readonly Change[];
  /** The content that was kept. Rejects with SealError where it was changed. */
  content(piece: Piece): Promise<Uint8Array>;
}

/** Opens an entry. Rejects with ENOENT where there is none, and with SealError where it was changed. */
export async function openEntry(path: string, callId: string, sealer: Sealer): Promise<UndoEntry> {
  const file = await open(path, O_RDONLY | O_NOFOLLOW);
  const content = async (name: string, { at, length }: Piece): Promise<Uint8Array> => {
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read(buffer, 0, length, at);
    return sealer.open(`undo/${callId}/${name}`, buffer.subarray(0, bytesRead));
  };
  try {
    const { size } = await file.stat();
    const trailer = Buffer.alloc(LENGTH_BYTES);
    await file.read(trailer, 0, LENGTH_BYTES, size - LENGTH_BYTES);
    const length = Math.min(trailer.readUInt32BE(), size);
    const list = await content("changes", { at: size - LENGTH_BYTES - length, length });
    return {
      // Sealed by this agent, so it is what the agent wrote.
      changes: JSON.parse(Buffer.from(list).toString("utf8")) as Change[],
      content: (piece) => content(String(piece.at), piece),
      [Symbol.asyncDispose]: () => file.close(),
    };
  } catch (error: unknown) {
    await file.close();
    throw error;
  }
}
