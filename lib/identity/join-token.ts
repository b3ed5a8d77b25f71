import { invalidField } from "../fault/invalid-input.ts";

/** What a join token holds: how a machine finds the control plane and knows it, and how it is let in. */
export interface JoinToken {
  /** The enrollment's id. */
  id: string;
  /** 128 bits, base64url. A secret. */
  secret: string;
  /** Where the registry is reached, most wanted first. */
  urls: readonly string[];
  /** The authority that signs the registry's certificate: SHA-256 of its public key, in hex. */
  ca: string;
  /** The trust domain of its identities. */
  domain: string;
  /** The name that the device has to take. */
  name: string;
  /** The labels that the device has to have, and no others. */
  labels: Readonly<Record<string, string>>;
}

const PREFIX = "rvj1.";
const MAX_LENGTH = 16_384;

/** The token as a text to hand over. A secret until it is used or has expired. */
export function formatJoinToken(token: JoinToken): string {
  return PREFIX + Buffer.from(JSON.stringify(token)).toString("base64url");
}

/** Reads a token, with white space around it. INVALID_INPUT for anything else; the message never shows any of it. */
export function parseJoinToken(text: string): JoinToken {
  const trimmed = text.trim();
  if (!trimmed.startsWith(PREFIX) || trimmed.length > MAX_LENGTH) throw damaged();
  const value = parseJson(Buffer.from(trimmed.slice(PREFIX.length), "base64url").toString("utf8"));
  if (!isJoinToken(value)) throw damaged();
  return value;
}

function damaged(): Error {
  const message = 'this is no join token, or not all of it: it begins with "rvj1." and is one word';
  return invalidField("token", "join_token", message, { text: message });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isJoinToken(value: unknown): value is JoinToken {
  if (!isRecord(value) || !isRecord(value.labels) || !Array.isArray(value.urls) || value.urls.length === 0)
    return false;
  const texts = [value.id, value.secret, value.domain, value.name, ...value.urls, ...Object.values(value.labels)];
  return texts.every((text) => typeof text === "string") && /^[0-9a-f]{64}$/.test(String(value.ca));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
