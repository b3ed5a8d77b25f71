// A process that accepts one edition of an owner's manifest after the other, to be killed by a test. Prints each version when it
// was accepted. Arguments: the folder, the owner's key as PEM file, the first version.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { signManifest } from "../../../lib/owner-manifest/envelope.ts";
import { loadKeyFile } from "../../../lib/sign/key-file.ts";
import { openOwnerManifest } from "../manifest/owner.ts";

const [folder = "", keyFile = "", first = "1"] = process.argv.slice(2);
const key = await loadKeyFile(keyFile);
const file = join(folder, "manifest.json");
const options = { file, keys: [key], trustFile: join(folder, "owner-trust.json"), device: "test", nowMs: Date.now() };
for (let version = Number(first); ; version++) {
  const text = `version: ${version}\nexpire_time: 2100-01-01\ndevices: [test]\nmode: user\n`;
  await writeFile(file, signManifest(key, text));
  await openOwnerManifest(options);
  process.stdout.write(`${version}\n`);
}
