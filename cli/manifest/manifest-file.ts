import { readFile } from "node:fs/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { ModeSchema, SandboxLevelSchema } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { OwnerManifest } from "../../gen/ts/reeve/device/v1/owner_manifest_pb.ts";
import { MAX_MANIFEST, readOwnerManifest } from "../../lib/owner-manifest/document.ts";
import { expiryMs } from "../../lib/owner-manifest/envelope.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { enumName } from "../print/enum-name.ts";
import { publicKeyText } from "./owner-key.ts";

/** The file that is meant: the one that is named, else the device's. Throws a UsageError where there is none. */
export function manifestFile(named: string | undefined, { env }: CommandContext): string {
  const file = named ?? env.REEVE_DEVICE_MANIFEST;
  if (file) return file;
  throw new UsageError("no manifest is named", ["name the file, or set device.manifest in the configuration file"]);
}

/** The bytes of a file that is no larger than a manifest can be. Throws a UsageError. */
export async function readManifestFile(path: string): Promise<Uint8Array> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new UsageError(`${path} cannot be read`, [], { cause });
  });
  if (bytes.length <= 4 * MAX_MANIFEST) return bytes;
  throw new UsageError(`${path} is too large for a manifest`);
}

/** The manifest of a text. Throws a UsageError with a line for each problem: `manifest.yaml:3: …`. */
export function requireManifest(text: string, path: string): OwnerManifest {
  const read = readOwnerManifest(text);
  if (read.ok) return read.manifest;
  const lines = read.problems.map(({ line, message }) => `${path}:${line}: ${message}`);
  throw new UsageError(["the manifest is not valid:", ...lines].join("\n"));
}

/** A manifest as a document for programs, with the names of the text. */
export function manifestJson(manifest: OwnerManifest): JsonObject {
  return {
    version: Number(manifest.version),
    expire_time: new Date(expiryMs(manifest)).toISOString(),
    devices: manifest.devices,
    mode: enumName(ModeSchema, manifest.mode),
    capabilities: manifest.capabilities,
    read_roots: manifest.readRoots,
    write_roots: manifest.writeRoots,
    hosts: manifest.hosts,
    sandbox: enumName(SandboxLevelSchema, manifest.sandbox),
    plugins: Object.fromEntries(manifest.plugins.map(({ name, digest }) => [name, digest])),
    environment: manifest.environment,
    next_keys: manifest.nextKeys.map((raw) => publicKeyText({ raw })),
  };
}
