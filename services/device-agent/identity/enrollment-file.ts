import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "../replace-file.ts";

export interface DeviceEnrollment {
  /** The enrollment's id; names the folder of its keys and certificates. */
  id: string;
  /** The name that the device was given. */
  name: string;
  /** The labels that the device was given. */
  labels: Readonly<Record<string, string>>;
  /** Where the registry is reached. */
  urls: readonly string[];
  /** The trust domain of the control plane's identities. */
  domain: string;
  /** The version of the keyring that the keys for grants are from; missing in the file of an earlier version: 0. */
  keyringVersion?: number;
  /** What the owner said of the device when it joined, as settings in the environment. */
  settings: Readonly<Record<string, string>>;
}

export interface EnrollmentFiles {
  folder: string;
  /** The TLS key; never leaves the device. */
  keyFile: string;
  /** The certificate and the one above it, replaced with each renewal. */
  certFile: string;
  /** The authorities of the control plane. */
  caFile: string;
  /** The keys that sign grants, as they were when the device joined. */
  grantKeysFile: string;
  /** How often the device has renewed. */
  renewCountFile: string;
}

/** The files of one enrollment, in a folder of its own, so that a new enrollment leaves the one before whole until it is done. */
export function enrollmentFiles(stateDir: string, id: string): EnrollmentFiles {
  const folder = join(stateDir, "enrollments", id);
  return {
    folder,
    keyFile: join(folder, "tls.key"),
    certFile: join(folder, "tls.crt"),
    caFile: join(folder, "authorities.pem"),
    grantKeysFile: join(folder, "grant.pub"),
    renewCountFile: join(folder, "renew-count"),
  };
}

/** The active enrollment; undefined where the device has not joined. Rejects where the file is damaged. */
export async function readEnrollment(stateDir: string): Promise<DeviceEnrollment | undefined> {
  const path = enrollmentPath(stateDir);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as DeviceEnrollment;
  } catch (cause: unknown) {
    throw new Error(`The file ${path} is damaged. Restore it, or enroll the device again.`, { cause });
  }
}

/** Makes an enrollment active, whose files are written already, and removes the one before. */
export async function writeEnrollment(stateDir: string, enrollment: DeviceEnrollment): Promise<void> {
  const before = await readEnrollment(stateDir).catch(() => undefined);
  await replaceFile(enrollmentPath(stateDir), `${JSON.stringify(enrollment, undefined, 2)}\n`);
  if (before === undefined || before.id === enrollment.id) return;
  await rm(enrollmentFiles(stateDir, before.id).folder, { recursive: true, force: true });
}

function enrollmentPath(stateDir: string): string {
  return join(stateDir, "enrollment.json");
}
