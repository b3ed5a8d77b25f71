import { join } from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import { parseStrictJson } from "../../lib/json/strict-json.ts";
import { UsageError } from "../errors/usage-error.ts";
import { readOwnFile, writePrivateFile } from "../private-file.ts";
import { openWithPassphrase, type SealedSecret, sealWithPassphrase } from "./passphrase-seal.ts";

/** An operator's token under a passphrase. */
export interface SealedOperator extends SealedSecret {
  /** The token's id, which is no secret: it says which token to revoke. */
  tokenId: string;
}

const VERSION = 1;
const TOKEN = /^rv_([0-9a-f]{12})_/;

/** The file of a data folder with the sealed operator's token. */
export function sealedOperatorPath(folder: string): string {
  return join(folder, "operator.sealed");
}

/** The sealed token; undefined where there is none. Throws a UsageError for a file that is damaged or open to others. */
export async function readSealedOperator(folder: string): Promise<SealedOperator | undefined> {
  const path = sealedOperatorPath(folder);
  const bytes = await readOwnFile(path);
  if (bytes === undefined) return undefined;
  const known = sealedFrom(bytes);
  if (known !== undefined) return known;
  throw new UsageError(`${path} is damaged`, ["`reeve operator replace` makes a new operator's token and seals that"]);
}

/** Seals a token and keeps it, mode 0600, in place of the one before. */
export async function writeSealedOperator(
  folder: string,
  token: string,
  passphrase: string,
  cost?: number,
): Promise<void> {
  const tokenId = TOKEN.exec(token)?.[1] ?? "";
  const { salt, nonce, sealed } = await sealWithPassphrase(token, passphrase, contextOf(tokenId), cost);
  const text = JSON.stringify({ version: VERSION, token_id: tokenId, salt, nonce, sealed }, undefined, 2);
  await writePrivateFile(sealedOperatorPath(folder), `${text}\n`);
}

/** The token; undefined where the passphrase is not the one. */
export function openSealedOperator(
  kept: SealedOperator,
  passphrase: string,
  cost?: number,
): Promise<string | undefined> {
  return openWithPassphrase(kept, passphrase, contextOf(kept.tokenId), cost);
}

function contextOf(tokenId: string): string {
  return `reeve operator token ${tokenId} v${VERSION}`;
}

function sealedFrom(bytes: Uint8Array): SealedOperator | undefined {
  let value: JsonValue;
  try {
    value = parseStrictJson(bytes);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value) || value.version !== VERSION)
    return undefined;
  const { token_id: tokenId, salt, nonce, sealed } = value;
  if (typeof tokenId !== "string" || typeof salt !== "string") return undefined;
  return typeof nonce === "string" && typeof sealed === "string" ? { tokenId, salt, nonce, sealed } : undefined;
}
