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
  { file: "runs.token", gives: "calls as the agent service's runs do" },
  { file: "agent/sealing.key", gives: "opens what runs were asked and answered" },
  { file: "login.json", gives: "is you, with all your rights, where you logged in with `reeve login`" },
];

/** What `reeve up` says of it. Ends with a newline. */
export const EXPOSED_TEXT =
  "\nA program that you approve runs as you, outside the sandbox: it can read the keys and tokens in the state folder, act with\n" +
  "them and change what lies there. What runs in the sandbox, and tools that take a path, cannot. `reeve doctor` lists the files.\n";

/** What `reeve up` says of its device's sandbox. */
export function sandboxText({ isolation, shortfall }: { isolation: string; shortfall: string }): string {
  if (shortfall === "") return `${isolation}: programs that look at files run in it without asking`;
  return `none, so that programs that look at files wait for a person: ${shortfall}`;
}

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
      "tools that take a path refuse this folder, and the sandbox hides it; a program that a person approved runs outside of it. " +
        "Approve programs with that in mind",
    ),
  ];
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}
