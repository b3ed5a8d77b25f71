import { expiryMs } from "../../lib/owner-manifest/envelope.ts";
import type { CommandContext } from "../command-context.ts";
import { readManifestFile } from "../manifest/manifest-file.ts";
import { trustedKeys, verified } from "../manifest/verify.ts";
import { expiryText, SOON_MS } from "../print/expiry.ts";
import { broken, type Finding, note, ok } from "./finding.ts";

const TODO = "`reeve manifest edit` makes a new edition; the device keeps it from its next start on";

/** Whether the device of this machine would start with the owner's manifest that the settings name. */
export async function checkManifest(context: CommandContext): Promise<Finding[]> {
  const file = context.env.REEVE_DEVICE_MANIFEST;
  if (!file) return [];
  try {
    const keys = await trustedKeys({ publicKey: [] }, context);
    const result = verified(await readManifestFile(file), keys, undefined, context.now());
    if ("problem" in result) return [broken("manifest", `${file}: ${result.problem}`, TODO)];
    const end = expiryMs(result.manifest);
    const text = `${file}: version ${result.manifest.version}, ${expiryText(end, context.now())}`;
    return [end - context.now() < SOON_MS ? note("manifest", text, TODO) : ok("manifest", text)];
  } catch (error: unknown) {
    return [broken("manifest", error instanceof Error ? error.message : String(error), TODO)];
  }
}
