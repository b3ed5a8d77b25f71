import { existsSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { readPrivateFile } from "../../lib/files/private-file.ts";
import { type Authority, authorityFromPem } from "../../lib/identity/authority.ts";
import { UsageError } from "../errors/usage-error.ts";
import { writePrivateFile } from "../private-file.ts";

/** The files of an authority, in its folder. */
export function authorityFiles(folder: string): { certificate: string; key: string } {
  return { certificate: join(folder, "ca.crt"), key: join(folder, "ca.key") };
}

/** The files of a service or a device, in its folder, by the names that a Kubernetes secret for TLS has. */
export function certificateFiles(folder: string): { certificate: string; key: string; authorities: string } {
  return { certificate: join(folder, "tls.crt"), key: join(folder, "tls.key"), authorities: join(folder, "ca.crt") };
}

/** Throws a UsageError where one of the files exists: a key is never written over. */
export function requireNew(paths: readonly string[]): void {
  const existing = paths.find((path) => existsSync(path));
  if (existing === undefined) return;
  throw new UsageError(`${existing} exists already, and a key is never written over`, ["choose another --out folder"]);
}

/** Reads an authority that `reeve service-ca init` made. Throws a UsageError where the folder holds none that can be used. */
export function readAuthority(folder: string): Authority {
  const files = authorityFiles(folder);
  try {
    return authorityFromPem(readFileSync(files.certificate, "utf8"), readPrivateFile(files.key));
  } catch (cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new UsageError(
      `${folder} holds no authority that can be used: ${why}`,
      ["`reeve service-ca init` makes one"],
      {
        cause,
      },
    );
  }
}

/** Writes files: keys for their owner's eyes, the rest for everybody's. Makes the folder. */
export async function writeFiles(
  folder: string,
  keys: Readonly<Record<string, string>>,
  others: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 });
  for (const [path, text] of Object.entries(keys)) await writePrivateFile(path, text);
  for (const [path, text] of Object.entries(others)) await writeFile(path, text, { mode: 0o644 });
}
