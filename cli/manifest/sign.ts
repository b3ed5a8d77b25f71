import { expiryMs, signManifest, textIn } from "../../lib/owner-manifest/envelope.ts";
import type { SigningKey } from "../../lib/sign/keys.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visibleLine } from "../print/escape.ts";
import { expiryText } from "../print/expiry.ts";
import { jsonDocument } from "../print/json.ts";
import { writePrivateFile } from "../private-file.ts";
import { manifestFile, readManifestFile, requireManifest } from "./manifest-file.ts";
import { type KeyFlag, openOwnerKey } from "./owner-key.ts";

export interface SignFlags extends KeyFlag {
  out?: string;
  json?: true;
}

/** `reeve manifest sign`: signs a text with the owner's key, exactly as it is. */
export async function sign(source: string, flags: SignFlags, context: CommandContext): Promise<void> {
  const text = textIn(await readManifestFile(source));
  const out = manifestFile(flags.out, context);
  requireCurrent(text, source, context);
  await writeSigned({ text, source, out, key: await openOwnerKey(flags, context) }, flags.json === true, context);
}

/** Refuses a text that no device would take. Throws a UsageError. */
export function requireCurrent(text: string, source: string, context: CommandContext): void {
  const endMs = expiryMs(requireManifest(text, source));
  if (context.now() >= endMs)
    throw new UsageError(`${source}: expire_time: it has ${expiryText(endMs, context.now())}: no device would take it`);
}

/** Signs a text and writes the file. */
export async function writeSigned(
  { text, source, out, key }: { text: string; source: string; out: string; key: SigningKey },
  json: boolean,
  context: CommandContext,
): Promise<void> {
  const manifest = requireManifest(text, source);
  await writePrivateFile(out, signManifest(key, text));
  const endMs = expiryMs(manifest);
  if (json) {
    const expireTime = new Date(endMs).toISOString();
    return void context.stdout.write(
      jsonDocument({ file: out, version: Number(manifest.version), keyId: key.keyId, expireTime }),
    );
  }
  context.stdout.write(`${visibleLine(out)}\n`);
  context.stderr.write(
    `reeve: version ${manifest.version}, ${expiryText(endMs, context.now())}, signed by ${key.keyId}; a device keeps it from its next start on\n`,
  );
}
