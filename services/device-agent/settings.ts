import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { type VerifyKey, verifyKeyFromRaw } from "../../lib/sign/keys.ts";

/** The modes by the names that the configuration uses. */
export const MODES = { user: Mode.USER, sudo: Mode.SUDO, all: Mode.ALL } as const;

/** The entries of a list, without white space around them and without empty ones. */
export function parseList(text: string, separator: "," | ":"): string[] {
  return text
    .split(separator)
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

/**
 * Where to dial; nothing for an empty text. Throws an Error that names the variable where an entry is no https address: the
 * registry knows a device by its certificate, which is shown over TLS only.
 */
export function parseRegistryUrls(text: string, variable: string): string[] {
  return parseList(text, ",").map((entry) => {
    const url = URL.parse(entry);
    if (url?.protocol === "https:") return url.href.replace(/\/$/, "");
    throw new Error(`${variable} must list https addresses, such as https://reeve.example:7400, not "${entry}"`);
  });
}

/** Labels from "role=web,zone=home". Throws an Error that names the variable and the entry without a key. */
export function parseLabels(text: string, variable: string): Record<string, string> {
  const labels = parseList(text, ",").map((entry): [string, string] => {
    const at = entry.indexOf("=");
    if (at < 1) throw new Error(`${variable}: "${entry}" is not of the form key=value`);
    return [entry.slice(0, at), entry.slice(at + 1)];
  });
  return Object.fromEntries(labels);
}

/**
 * Ed25519 public keys from base64 of their 32 raw bytes, separated by commas or white space.
 * Throws an Error that names the variable where there is none, or where one is no key.
 */
export function parseKeys(text: string, variable: string): VerifyKey[] {
  const keys = text.split(/[\s,]+/).filter((entry) => entry !== "");
  if (keys.length === 0) throw new Error(`${variable}: holds no key`);
  return keys.map((entry) => {
    try {
      return verifyKeyFromRaw(Buffer.from(entry, "base64"));
    } catch (cause: unknown) {
      throw new Error(`${variable}: "${entry}" is no base64 of 32 bytes`, { cause });
    }
  });
}
