import { expiryMs, parseEnvelope, textIn } from "../../lib/owner-manifest/envelope.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import type { CommandContext } from "../command-context.ts";
import { visible, visibleLine } from "../print/escape.ts";
import { expiryText } from "../print/expiry.ts";
import { jsonDocument } from "../print/json.ts";
import { manifestFile, manifestJson, readManifestFile, requireManifest } from "./manifest-file.ts";

/** `reeve manifest show`: the text as it was signed. Says nothing of whether it is to be trusted. */
export async function showManifest(named: string | undefined, json: boolean, context: CommandContext): Promise<void> {
  const file = manifestFile(named, context);
  const envelope = parseEnvelope(await readManifestFile(file));
  const text = textIn(envelope.payload);
  const manifest = requireManifest(text, file);
  const signers = envelope.signatures.map(({ keyId }) => keyId);
  const digest = sha256Hex(envelope.payload);
  if (json) {
    const expired = context.now() >= expiryMs(manifest);
    return void context.stdout.write(
      jsonDocument({ file, digest, signers, expired, manifest: manifestJson(manifest), text }),
    );
  }
  context.stdout.write(text.endsWith("\n") ? visible(text) : `${visible(text)}\n`);
  context.stderr.write(
    `reeve: ${visibleLine(file)}: version ${manifest.version}, ${expiryText(expiryMs(manifest), context.now())}, ` +
      `says that ${visibleLine(signers.join(", "))} signed it; \`reeve manifest verify\` checks that\n`,
  );
}
