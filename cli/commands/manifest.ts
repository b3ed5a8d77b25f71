import type { Command } from "commander";
import type { CommandContext } from "../command-context.ts";
import { withConfigOption } from "../config/load-config.ts";
import { withJson } from "../list-options.ts";
import type { KeyFlag } from "../manifest/owner-key.ts";
import type { SignFlags } from "../manifest/sign.ts";
import type { VerifyFlags } from "../manifest/verify.ts";
import { jsonDocument } from "../print/json.ts";
import { gather } from "../repeatable.ts";

/** Registers `reeve manifest` with key, edit, sign, show and verify. */
export function registerManifest(program: Command, context: CommandContext): void {
  const manifest = program
    .command("manifest")
    .description(
      "Say, signed by the machine's owner, what a device may do at most: mode, capabilities, folders, hosts, sandbox, plugins.\n" +
        "The device itself keeps it, whatever its settings, its control plane and a grant say.",
    );
  const command = (name: string, description: string) =>
    withConfigOption(withJson(manifest.command(name).description(description)));
  const withKey = (one: Command) =>
    one.option(
      "--key <file>",
      "an Ed25519 key in the clear (PKCS #8 PEM, made where it is missing) in place of the sealed one",
    );
  const FILE = "the signed file; default: device.manifest of the settings";
  withKey(
    command(
      "key",
      "Print the owner's public key, for device.manifest_keys. Makes one, under a passphrase, where there is none.",
    ),
  ).action((flags: KeyFlag & { json?: true }) => key(flags, context));
  withKey(
    command(
      "edit",
      "Open the manifest in $VISUAL or $EDITOR, and sign what you made of it, with the next version.",
    ).argument("[file]", FILE),
  ).action(async (file: string | undefined, flags: SignFlags) =>
    (await import("../manifest/edit.ts")).edit(file, flags, context),
  );
  withKey(command("sign", "Sign the text of a manifest, exactly as it is.").argument("<text>", "the YAML file"))
    .option("--out <file>", `where to write it; default: device.manifest of the settings`)
    .action(async (text: string, flags: SignFlags) => (await import("../manifest/sign.ts")).sign(text, flags, context));
  command("show", "Show the text that was signed.")
    .argument("[file]", FILE)
    .action(async (file: string | undefined, { json }: { json?: true }) =>
      (await import("../manifest/show.ts")).showManifest(file, json === true, context),
    );
  withKey(
    command("verify", "Check who signed it, and whether it has expired. Exit code 10 where a device would refuse it."),
  )
    .argument("[file]", FILE)
    .option(
      "--public-key <key>",
      "a key that may sign it; can be repeated. Default: device.manifest_keys of the settings, else the owner's of this machine",
      gather,
      [],
    )
    .option("--device <name>", "a device that it has to name")
    .action(async (file: string | undefined, flags: VerifyFlags) =>
      (await import("../manifest/verify.ts")).verifyManifest(file, flags, context),
    );
}

async function key(flags: KeyFlag & { json?: true }, context: CommandContext): Promise<void> {
  const { openOwnerKey, ownerPublicKey, publicKeyText } = await import("../manifest/owner-key.ts");
  const known = (await ownerPublicKey(flags, context)) ?? (await openOwnerKey(flags, context));
  const publicKey = publicKeyText(known);
  context.stdout.write(flags.json ? jsonDocument({ publicKey, keyId: known.keyId }) : `${publicKey}\n`);
}
