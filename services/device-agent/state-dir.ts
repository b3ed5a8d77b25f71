import { chmod, mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { ACCEPTED_FILE } from "../../lib/plugin/accepted.ts";
import { FOUND_FILE } from "../../lib/plugin/found-tools.ts";
import { SEALING_KEY_FILE, SECRETS_FOLDER } from "../../lib/secrets/store.ts";
import { type FolderLock, lockFolder } from "../../lib/store/folder-lock.ts";

/** The agent's own files. */
export interface StateDir {
  /** The folder, without symbolic links. */
  path: string;
  /** The device's private key. */
  keyFile: string;
  /** The signed manifest. */
  manifestFile: string;
  /** The owner's keys that the device is pinned to, and which manifest it has accepted. */
  ownerTrustFile: string;
  /** The keys that the device trusts for grants. */
  grantKeysFile: string;
  /** The ledger's database. */
  ledgerFile: string;
  /** What calls have printed, where it is too much for the ledger. */
  outputFolder: string;
  /** Seals what the ledger keeps of tools' output, and what is kept of files. */
  sealingKeyFile: string;
  /** The plugins that the owner accepted. Written by `reeve plugin accept`. */
  acceptedFile: string;
  /** What calls changed of files, sealed with the same key. */
  undoFolder: string;
  /** What the plugins' MCP servers listed, for the owner to accept. */
  foundFile: string;
  /** The secrets of tools, sealed with the same key. Written by `reeve secret`. */
  secretsFolder: string;
}

/** The file of a state folder with the owner's keys that the device is pinned to. */
export function ownerTrustFile(folder: string): string {
  return join(folder, "owner-trust.json");
}

/** Takes the agent's folder for this process. Throws FolderInUse where another has it. */
export function lockStateDir(folder: string): FolderLock {
  return lockFolder(folder, { program: "device", setting: "REEVE_DEVICE_STATE_DIR" });
}

/** Makes the agent's folder where it is missing, and closes it to everybody but the agent's own user. */
export async function openStateDir(folder: string): Promise<StateDir> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const path = await realpath(folder);
  return {
    path,
    keyFile: join(path, "device.key"),
    manifestFile: join(path, "manifest.pb"),
    ownerTrustFile: ownerTrustFile(path),
    grantKeysFile: join(path, "grant-keys.json"),
    ledgerFile: join(path, "ledger.db"),
    outputFolder: join(path, "output"),
    sealingKeyFile: join(path, SEALING_KEY_FILE),
    acceptedFile: join(path, ACCEPTED_FILE),
    undoFolder: join(path, "undo"),
    foundFile: join(path, FOUND_FILE),
    secretsFolder: join(path, SECRETS_FOLDER),
  };
}
