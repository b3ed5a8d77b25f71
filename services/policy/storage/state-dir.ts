import { chmod, mkdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { loadSealingKey, type SealingKey } from "../../../lib/identity/seal.ts";

/** Policy's own folder. */
export interface PolicyState {
  path: string;
  /** The database, where no database on a server is configured. */
  databaseFile: string;
  /** Seals the private keys in the database. */
  sealing: SealingKey;
}

const OTHERS = 0o007;

/** Where policy keeps its files. */
export interface StateOptions {
  stateDir: string;
  /** Default: one in the folder. */
  sealingKeyFile?: string;
}

/** Makes policy's folder and its sealing key where they are missing, and closes the folder to other users. */
export async function openPolicyState({ stateDir, sealingKeyFile }: StateOptions): Promise<PolicyState> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  // One that only its group can enter stays: it may be a volume's, which belongs to root.
  if (((await stat(stateDir)).mode & OTHERS) !== 0) await chmod(stateDir, 0o700);
  return {
    path: stateDir,
    databaseFile: join(stateDir, "policy.db"),
    sealing: await loadSealingKey(sealingKeyFile ?? join(stateDir, "sealing.key")),
  };
}
