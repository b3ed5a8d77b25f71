/** Where kept content lies in the file of its entry: sealed, in bytes. */
export interface Piece {
  at: number;
  length: number;
}

/** What a path named before a call changed it, with all that puts it back. */
export type Before =
  | { kind: "missing" }
  | ({ kind: "file"; sha256: string; piece: Piece } & Attributes)
  | ({ kind: "folder" } & Attributes)
  | { kind: "link"; target: string };

/** The permission bits and the owner. */
export interface Attributes {
  mode: number;
  uid: number;
  gid: number;
}

/** What a path names after the call, as far as is needed to see that nothing else changed it. */
export type After =
  | { kind: "missing" }
  | { kind: "file"; sha256: string }
  | { kind: "folder" }
  | { kind: "link"; target: string };

/** Which file or folder it is, whatever its name. A file that was written to is another. */
export interface Identity {
  dev: number;
  ino: number;
  /** Size and time of the last change of content, in milliseconds. Undefined for a folder. */
  content: readonly [size: number, mtimeMs: number] | undefined;
}

/** One thing that a call changed. Paths are absolute and real. A folder comes before what is in it. */
export type Change =
  | { kind: "content"; path: string; before: Before; after: After }
  | { kind: "move"; from: string; to: string; identity: Identity; replaced: Before };

/** How much is kept. */
export interface UndoBounds {
  /** The largest file, in bytes. */
  fileBytes: number;
  /** The content that one call may take away, in bytes. */
  callBytes: number;
  /** The files, links and folders that one call may take away. */
  callThings: number;
  /** All entries together, in bytes on the disk. The oldest go first. */
  totalBytes: number;
  /** How long an entry is kept, in milliseconds. */
  ageMs: number;
}

const MIB = 1024 * 1024;

export const UNDO_BOUNDS: UndoBounds = {
  fileBytes: 16 * MIB,
  callBytes: 64 * MIB,
  callThings: 10_000,
  totalBytes: 256 * MIB,
  ageMs: 7 * 24 * 60 * 60_000,
};

/** The earlier state cannot be kept; the message is why, for the caller. */
export class NotUndoable extends Error {
  override readonly name = "NotUndoable";
}
