import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Mode, SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { type OwnerManifest, OwnerManifestSchema } from "../../gen/ts/reeve/device/v1/owner_manifest_pb.ts";
import { PUBLIC_KEY_BYTES } from "../sign/keys.ts";
import { createYamlReader, isAbsent, type YamlNode, type YamlProblem, type YamlReader } from "../yaml/yaml-reader.ts";

/** The manifest that a text is, or what is wrong with it, each with its line. */
export type ReadManifest = { ok: true; manifest: OwnerManifest } | { ok: false; problems: readonly YamlProblem[] };

/** The longest text of a manifest, in characters. */
export const MAX_MANIFEST = 64 * 1024;

const FIELDS = OwnerManifestSchema.fields.map(({ name }) => name);
const REQUIRED = ["version", "expire_time", "devices", "mode"] as const;

const MODES = new Map([
  ["user", Mode.USER],
  ["sudo", Mode.SUDO],
  ["all", Mode.ALL],
]);
const LEVELS = new Map([
  ["none", SandboxLevel.NONE],
  ["workspace", SandboxLevel.WORKSPACE],
  ["read_only", SandboxLevel.READ_ONLY],
]);

const CAPABILITY = /^(?:(?:[A-Za-z0-9_.:-]{1,127}[.:])?\*|[A-Za-z0-9_.:-]{1,128})$/;
const HOST = /^[^\s,A-Z]{1,300}$/;
const NAME = /^\S{1,128}$/;
const PLUGIN = /^[a-z][a-z0-9-]{0,31}$/;
const DIGEST = /^[0-9a-f]{64}$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;
const FOLDER = /^\/[^\0:]{0,4095}$/;

/**
 * Reads an owner's manifest strictly: an unknown field is a problem, because what it would forbid could not be kept. Pure.
 */
export function readOwnerManifest(text: string): ReadManifest {
  if (text.length > MAX_MANIFEST)
    return { ok: false, problems: [{ line: 1, message: `it is over ${MAX_MANIFEST} characters` }] };
  const reader = createYamlReader(text);
  const fields = reader.fields(reader.root, "the manifest", FIELDS);
  const at = (name: string): YamlNode => fields.get(name);
  for (const name of REQUIRED) if (isAbsent(at(name))) reader.report(reader.root, `${name} is missing`);
  const texts = (name: string, form: RegExp, what: string) => textsOf(reader, at(name), name, form, what);
  const devices = texts("devices", NAME, "the name of a device");
  if (!isAbsent(at("devices")) && devices.length === 0) reader.report(at("devices"), "devices must name at least one");
  const manifest = create(OwnerManifestSchema, {
    version: BigInt(versionOf(reader, at("version"))),
    expireTime: timestampFromMs(timeOf(reader, at("expire_time"))),
    devices,
    mode: oneOf(reader, at("mode"), "mode", MODES) ?? Mode.UNSPECIFIED,
    capabilities: texts("capabilities", CAPABILITY, 'a capability such as "fs.read", "fs.*" or "*"'),
    readRoots: texts("read_roots", FOLDER, "an absolute path without a colon"),
    writeRoots: texts("write_roots", FOLDER, "an absolute path without a colon"),
    hosts: texts("hosts", HOST, 'a host such as "api.example.com", "*.example.com" or "10.0.0.0/8", in small letters'),
    sandbox: oneOf(reader, at("sandbox"), "sandbox", LEVELS) ?? SandboxLevel.NONE,
    plugins: pluginsOf(reader, at("plugins")),
    environment: texts("environment", VARIABLE, "the name of a variable"),
    nextKeys: texts("next_keys", /./, "a public key").map((key) => keyOf(reader, at("next_keys"), key)),
  });
  return reader.problems.length > 0 ? { ok: false, problems: reader.problems } : { ok: true, manifest };
}

function versionOf(reader: YamlReader, node: YamlNode): number {
  const value = isAbsent(node) ? 1 : reader.data(node);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 1) return value;
  reader.report(node, "version must be a whole number from 1");
  return 1;
}

function timeOf(reader: YamlReader, node: YamlNode): number {
  if (isAbsent(node)) return 0;
  const text = reader.text(node, "expire_time") ?? "";
  const ms = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?Z)?$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isFinite(ms)) return ms;
  reader.report(node, "expire_time must be a time in UTC such as 2027-03-01 or 2027-03-01T12:00:00Z");
  return 0;
}

function oneOf<T>(reader: YamlReader, node: YamlNode, what: string, known: ReadonlyMap<string, T>): T | undefined {
  if (isAbsent(node)) return undefined;
  const value = known.get(reader.text(node, what) ?? "");
  if (value === undefined) reader.report(node, `${what} must be one of ${[...known.keys()].join(", ")}`);
  return value;
}

function textsOf(reader: YamlReader, node: YamlNode, name: string, form: RegExp, what: string): string[] {
  return reader.items(node, name).map((item) => {
    const text = reader.text(item, `an entry of ${name}`) ?? "";
    if (!form.test(text)) reader.report(item, `${name}: "${text}" is not ${what}`);
    return text;
  });
}

function pluginsOf(reader: YamlReader, node: YamlNode): { name: string; digest: string }[] {
  return reader.texts(node, "plugins").map(([name, digest]) => {
    if (!PLUGIN.test(name)) reader.report(node, `plugins: "${name}" is not the name of a plugin`);
    if (!DIGEST.test(digest))
      reader.report(
        node,
        `plugins: the digest of "${name}" must have 64 hex digits, as \`reeve plugin check\` prints it`,
      );
    return { name, digest };
  });
}

function keyOf(reader: YamlReader, node: YamlNode, text: string): Uint8Array {
  const raw = Buffer.from(text, "base64");
  if (raw.length !== PUBLIC_KEY_BYTES || raw.toString("base64") !== text)
    reader.report(node, `next_keys: "${text}" is no public key as \`reeve manifest key\` prints it`);
  return raw;
}
