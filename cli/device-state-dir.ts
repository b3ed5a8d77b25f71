import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";
import { dataDir } from "./profile.ts";

/** The option that names a device's state folder. */
export interface StateDirFlag {
  stateDir?: string;
}

/** What the option is, for `--help`. */
export const STATE_DIR_HELP =
  "the device's state folder. Default: REEVE_DEVICE_STATE_DIR, else that of `reeve up` or of the device that this machine joined as";

/** The state folder of this machine's device: the one that is named, else the one that there is. Throws a UsageError where there are two. */
export function deviceStateDir({ stateDir }: StateDirFlag, { env }: Pick<CommandContext, "env">): string {
  const named = stateDir || env.REEVE_DEVICE_STATE_DIR;
  if (named) return resolve(named);
  const [ofUp, ofJoined] = [join(dataDir(env), "device"), join(dataDir(env), "device-agent")];
  if (existsSync(ofUp) && existsSync(ofJoined))
    throw new UsageError("this machine has two devices, so say which", [
      `--state-dir ${ofUp}`,
      `--state-dir ${ofJoined}`,
    ]);
  return existsSync(ofJoined) ? ofJoined : ofUp;
}
