import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { createPrivateFile } from "../files/private-file.ts";
import { plainHost } from "../hosts/host-list.ts";
import type { Sealer } from "../identity/sealer.ts";
import { SECRET_NAME } from "./handle.ts";
import { MIN_SECRET } from "./mask.ts";

/** The file of the key that seals them, in a device's state folder. */
export const SEALING_KEY_FILE = "sealing.key";

/** The folder of secrets in a device's state folder. */
export const SECRETS_FOLDER = "secrets";

/** The most characters of a secret. */
export const MAX_SECRET = 8192;

/** A secret of the device. */
export interface Secret {
  value: string;
  /** The hosts that it may be sent to, in the form of plainHost; at least one. */
  hosts: readonly string[];
}

/** The secrets of a device: a sealed file each, mode 0600, in a folder of mode 0700. */
export interface SecretStore {
  /** Undefined where there is none. Throws SealError where it cannot be opened. */
  read(name: string): Secret | undefined;
  /** Keeps it, in place of one that has the name. */
  set(name: string, secret: Secret): Promise<void>;
  /** False where there was none. */
  delete(name: string): Promise<boolean>;
  /** All of them without their values, sorted by name. */
  list(): Promise<{ name: string; hosts: readonly string[] }[]>;
}

/** The secrets in a folder, which is read at every use, so that a change counts at once. */
export function openSecrets(folder: string, sealer: Sealer): SecretStore {
  const fileOf = (name: string): string => {
    if (!SECRET_NAME.test(name)) throw new Error(`"${name}" is not the name of a secret`);
    return join(folder, name);
  };
  const read = (name: string): Secret | undefined => {
    const sealed = contentOf(fileOf(name));
    return sealed === undefined ? undefined : parse(sealer.open(contextOf(name), Buffer.from(sealed, "base64")));
  };
  return {
    read,
    async set(name, { value, hosts }) {
      const problem = problemOf(value);
      if (problem !== undefined) throw new Error(`the secret ${problem}`);
      const content = Buffer.from(JSON.stringify({ value, hosts: hosts.map(plainHost) }));
      const file = fileOf(name);
      const sealed = Buffer.from(sealer.seal(contextOf(name), content)).toString("base64");
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // A dot begins no secret's name, so that a draft which is left over does not count.
      const draft = join(folder, `.${name}.${randomBytes(8).toString("hex")}`);
      await createPrivateFile(draft, `${sealed}\n`);
      await rename(draft, file);
    },
    async delete(name) {
      const existed = read(name) !== undefined;
      await rm(fileOf(name), { force: true });
      return existed;
    },
    async list() {
      const names = (await readdir(folder).catch(absent)) ?? [];
      const found = names.filter((name) => SECRET_NAME.test(name)).sort();
      return found.flatMap((name) => {
        const secret = read(name);
        return secret === undefined ? [] : [{ name, hosts: secret.hosts }];
      });
    },
  };
}

/** What is wrong with a secret's value; undefined where nothing is. */
export function problemOf(value: string): string | undefined {
  if (value.length < MIN_SECRET)
    return `is shorter than ${MIN_SECRET} characters, so that it could not be masked in outputs`;
  if (value.length > MAX_SECRET) return `is longer than ${MAX_SECRET} characters`;
  return /[^\t\r\n\x20-\x7e]/.test(value) ? "has a character that is not ASCII" : undefined;
}

function contentOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error: unknown) {
    return absent(error);
  }
}

/** Undefined for a file or folder that does not exist; throws what else it is. */
function absent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  return undefined;
}

function contextOf(name: string): string {
  return `secret/${name}`;
}

function parse(content: Uint8Array): Secret {
  return JSON.parse(Buffer.from(content).toString("utf8")) as Secret;
}
