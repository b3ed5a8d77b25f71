import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type Finding, note } from "./finding.ts";

/** What in a data folder is a secret in the clear, and what a program could do that reads it. */
const SECRETS: readonly { file: string; gives: string }[] = [
  { file: "policy/sealing.key", gives: "opens the keys that sign grants and the log" },
  { file: "registry/sealing.key", gives: "opens recorded arguments and the devices' authority" },
  { file: "device/sealing.key", gives: "opens what the device keeps" },
  { file: "device/device.key", gives: "signs receipts as this device" },
  { file: "authority/ca.key", gives: "makes certificates of services" },
  { file: "profile.json", gives: "looks at everything, and calls as an agent" },
  { file: "chat.token", gives: "calls as chat's agent" },
  { file: "login.json", gives: "is you, with all your rights, where you logged in with `reeve login`" },
];

/** What `reeve up` says of it. Ends with a newline. */
export const EXPOSED_TEXT =
  "\nNo sandbox yet: a program that runs as you, also one that you approved, can read the keys and tokens in the state folder,\n" +
  "act with them and change what lies there. Tools that take a path refuse that folder. `reeve doctor` lists the files.\n";

/** Finds which secrets of a data folder every program of its owner can read: no file mode keeps them from those. */
export async function checkExposed(folder: string): Promise<Finding[]> {
  const looked = await Promise.all(
    SECRETS.map(async (secret) => ((await isFile(join(folder, secret.file))) ? [secret] : [])),
  );
  const found = looked.flat();
  if (found.length === 0) return [];
  const files = found.map(({ file, gives }) => `${file} (${gives})`).join(", ");
  return [
    note(
      "secrets",
      `programs that run as you can read, in ${folder}: ${files}; and change tokens.json, which says who may ask`,
      "tools that take a path refuse this folder, programs do not: there is no sandbox yet. Approve programs with that in mind",
    ),
  ];
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}
