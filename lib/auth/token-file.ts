import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { requirePrivate } from "../files/private-file.ts";
import type { Principal } from "./principal.ts";
import {
  type IssuedToken,
  isToken,
  type KnownToken,
  knownToken,
  matchToken,
  mintToken,
  type TokenEntry,
  type TokenRequest,
} from "./token.ts";

export type { IssuedToken, TokenEntry, TokenRequest } from "./token.ts";

export interface TokenFile {
  /**
   * The principal of an Authorization header; undefined for an unknown one. Sees a token that another program has issued at
   * once, and one that it has revoked within a second. Throws where the file is damaged or may be read by others: then no token is accepted.
   */
  authenticate(authorization: string | undefined): Principal | undefined;
  /** Writes a new token's entry and returns the token, which cannot be had again. */
  issueToken(request: TokenRequest): IssuedToken;
  /** Forgets a token. False where there was none of that id. */
  revokeToken(id: string): boolean;
  /** All entries, expired ones too, oldest first. */
  listTokens(): TokenEntry[];
}

/** How often the file is looked at for a change, in milliseconds. */
const RECHECK_MS = 1000;

interface Loaded {
  stamp: string;
  entries: TokenEntry[];
  known: Map<string, KnownToken>;
}

const EMPTY: Loaded = { stamp: "none", entries: [], known: new Map() };

/**
 * Bearer tokens in one JSON file, hashed, made with mode 0600. The file need not exist: then no token is known, and the first one
 * makes it. A change is written to a temporary file, synced and renamed, so a reader never sees half of it. One program
 * at a time may change the file.
 */
export function createTokenFile(path: string, options: { now?: () => number } = {}): TokenFile {
  const now = options.now ?? Date.now;
  let loaded = EMPTY;
  let checked = Number.NEGATIVE_INFINITY;

  const reload = (at: number): Loaded => {
    checked = Number.NEGATIVE_INFINITY; // a file that cannot be read is tried again by the next caller
    const stamp = stampOf(path);
    if (stamp !== loaded.stamp) loaded = stamp === EMPTY.stamp ? EMPTY : load(path, stamp);
    checked = at;
    return loaded;
  };
  const replace = (entries: TokenEntry[]): void => {
    writeAtomically(path, `${JSON.stringify({ version: 1, tokens: entries }, undefined, 2)}\n`);
    reload(now());
  };

  return {
    authenticate(authorization) {
      const at = now();
      const current = at - checked >= RECHECK_MS || at < checked ? reload(at) : loaded;
      const principal = matchToken(current.known, authorization, at);
      // A token that is not known may just have been issued.
      return principal ?? (isToken(authorization) ? matchToken(reload(at).known, authorization, at) : undefined);
    },
    issueToken(request) {
      const issued = mintToken(request, now());
      replace([...reload(now()).entries, issued.entry]);
      return issued;
    },
    revokeToken(id) {
      const { entries } = reload(now());
      const rest = entries.filter((entry) => entry.id !== id);
      if (rest.length === entries.length) return false;
      replace(rest);
      return true;
    },
    listTokens: () => [...reload(now()).entries],
  };
}

/** Changes whenever the file does: a rename brings a new inode even within one tick of the clock. */
function stampOf(path: string): string {
  const stat = statSync(path, { bigint: true, throwIfNoEntry: false });
  if (stat === undefined) return EMPTY.stamp;
  requirePrivate(path, stat.mode);
  return `${stat.ino}:${stat.size}:${stat.mtimeNs}`;
}

function load(path: string, stamp: string): Loaded {
  const entries = parseEntries(readFileSync(path, "utf8"), path);
  return { stamp, entries, known: new Map(entries.map((entry) => [entry.id, knownToken(entry)])) };
}

function parseEntries(text: string, path: string): TokenEntry[] {
  const value: unknown = JSON.parse(text);
  const tokens = typeof value === "object" && value !== null && "tokens" in value ? value.tokens : undefined;
  if (!Array.isArray(tokens) || !tokens.every(isEntry)) throw new Error(`${path} is not a token file`);
  return tokens;
}

function isEntry(value: unknown): value is TokenEntry {
  if (typeof value !== "object" || value === null) return false;
  const entry = value as Record<string, unknown>;
  const texts = [entry.id, entry.name, entry.hash, entry.created, entry.expires ?? ""];
  const { roles, tools = [] } = entry;
  return (
    texts.every((text) => typeof text === "string") &&
    [roles, tools].every((list) => Array.isArray(list) && list.every((one) => typeof one === "string"))
  );
}

function writeAtomically(path: string, text: string): void {
  const temporary = `${path}.${process.pid}.tmp`;
  rmSync(temporary, { force: true });
  const file = openSync(temporary, "wx", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  const folder = openSync(dirname(path), "r"); // the rename is on disk only once its folder is
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
