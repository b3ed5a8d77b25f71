import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseStrictJson } from "../../lib/json/strict-json.ts";
import { loadOrCreateKeyFile } from "../../lib/sign/key-file.ts";
import {
  generateSigningKey,
  keyIdOf,
  type SigningKey,
  signingKeyFromPem,
  signingKeyToPem,
  type VerifyKey,
  verifyKeyFromRaw,
} from "../../lib/sign/keys.ts";
import { schemaAt } from "../../lib/tool/json-schema.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { askNewPassphrase } from "../operator/passphrase.ts";
import { openWithPassphrase, type SealedSecret, sealWithPassphrase } from "../operator/passphrase-seal.ts";
import { askHidden, canAsk } from "../print/prompt.ts";
import { readOwnFile, writePrivateFile } from "../private-file.ts";
import { dataDir } from "../profile.ts";

/** The option that names a key in the clear. */
export interface KeyFlag {
  key?: string;
}

interface SealedKey extends SealedSecret {
  publicKey: VerifyKey;
}

/** How often a passphrase may be mistyped. */
const TRIES = 3;

/** The file of a data folder with the owner's key, sealed: it signs what bounds a device, so it lies nowhere in the clear. */
export function ownerKeyPath(folder: string): string {
  return join(folder, "owner.sealed");
}

/** The owner's key. Asks for the passphrase, or for a new one where there is no key yet. Throws a UsageError where there is none then. */
export async function openOwnerKey({ key }: KeyFlag, context: CommandContext): Promise<SigningKey> {
  if (key !== undefined) return (await loadOrCreateKeyFile(key)).key;
  const sealed = await readSealed(context);
  if (sealed === undefined) return makeSealed(context);
  requireTerminal(context);
  for (let left = TRIES; left > 0; left--) {
    const passphrase = await askHidden(context, "Passphrase of the owner's key: ");
    if (passphrase === undefined || passphrase === "") break;
    const pem = await openWithPassphrase(sealed, passphrase, contextOf(sealed.publicKey), context.passphraseCost);
    if (pem !== undefined) return signingKeyFromPem(pem);
    context.stderr.write("That is not the passphrase.\n");
  }
  throw new UsageError("the owner's key was not opened: nothing was signed");
}

/** The owner's public key of this machine; undefined where there is none. */
export async function ownerPublicKey({ key }: KeyFlag, context: CommandContext): Promise<VerifyKey | undefined> {
  if (key !== undefined) return existsSync(key) ? (await loadOrCreateKeyFile(key)).key : undefined;
  return (await readSealed(context))?.publicKey;
}

/** A public key as settings and manifests hold it. */
export function publicKeyText({ raw }: Pick<VerifyKey, "raw">): string {
  return Buffer.from(raw).toString("base64");
}

async function makeSealed(context: CommandContext): Promise<SigningKey> {
  requireTerminal(context);
  const path = ownerKeyPath(dataDir(context.env));
  context.stderr.write(`There is no owner's key yet: one is made, and kept under a passphrase in ${path}.\n`);
  const passphrase = await askNewPassphrase(context, "New passphrase: ");
  if (passphrase === undefined) throw new UsageError("no passphrase was given: no key was made");
  const key = generateSigningKey();
  const sealed = await sealWithPassphrase(signingKeyToPem(key), passphrase, contextOf(key), context.passphraseCost);
  const text = JSON.stringify({ version: 1, public_key: publicKeyText(key), ...sealed }, undefined, 2);
  await writePrivateFile(path, `${text}\n`);
  return key;
}

async function readSealed({ env }: CommandContext): Promise<SealedKey | undefined> {
  const path = ownerKeyPath(dataDir(env));
  const bytes = await readOwnFile(path);
  if (bytes === undefined) return undefined;
  try {
    const { version, public_key: raw, salt, nonce, sealed } = schemaAt(parseStrictJson(bytes)) ?? {};
    if (version !== 1 || typeof raw !== "string") throw new Error("no key");
    if (typeof salt !== "string" || typeof nonce !== "string" || typeof sealed !== "string") throw new Error("no seal");
    return { publicKey: verifyKeyFromRaw(Buffer.from(raw, "base64")), salt, nonce, sealed };
  } catch (cause: unknown) {
    throw new UsageError(`${path} is damaged`, ["restore it: devices are pinned to its key"], { cause });
  }
}

function contextOf(key: Pick<VerifyKey, "raw">): string {
  return `reeve owner's key ${keyIdOf(key.raw)} v1`;
}

function requireTerminal(context: CommandContext): void {
  if (canAsk(context)) return;
  throw new UsageError("the owner's key is under a passphrase, and there is no terminal to ask for it on", [
    "run it at a terminal, or name a key in the clear with --key FILE",
  ]);
}
