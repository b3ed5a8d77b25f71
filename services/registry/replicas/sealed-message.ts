import { createHmac, timingSafeEqual } from "node:crypto";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type ReplicaBody,
  ReplicaBodySchema,
  type ReplicaMessage,
  ReplicaMessageSchema,
} from "../../../gen/ts/reeve/cluster/v1/replica_pb.ts";

/** The keys that only the replicas have, by number, while they are being changed. 32 bytes each. */
export interface BusKeys {
  /** The number of the key that authenticates what is sent. */
  current: number;
  keys: ReadonlyMap<number, Uint8Array>;
}

/** Why a message between replicas is refused: the metadata of ERROR_REASON_BUS_MESSAGE_REFUSED. */
export type RefusedWhy = "forged" | "stale" | "misdirected" | "malformed";

/** What became of a message from the bus. */
export type Opened =
  | { ok: true; body: ReplicaBody }
  /** The receiver's own words, for it alone or for all: it hears what it says to all, too. */
  | { ok: false; why: "misdirected"; own: boolean }
  | { ok: false; why: Exclude<RefusedWhy, "misdirected"> };

/** How far the clocks of two replicas may be apart, transport included, in milliseconds. */
export const MAX_AGE_MS = 60_000;

/** What a receiver checks a message against. */
export interface OpenFacts {
  keys: BusKeys;
  /** Who the message must be for. */
  to: string;
  /** Who must not have sent it: the receiver itself, to whom somebody plays its own words back. */
  self: string;
  now: number;
}

const DOMAIN = Buffer.from("reeve-replica-v1\0");

/** Authenticates a message for the bus. */
export function sealMessage(body: ReplicaBody, keys: BusKeys): Uint8Array {
  const bytes = toBinary(ReplicaBodySchema, body);
  const key = keys.keys.get(keys.current);
  if (key === undefined) throw new Error(`there is no key ${keys.current} for messages between replicas`);
  return toBinary(
    ReplicaMessageSchema,
    create(ReplicaMessageSchema, { body: bytes, mac: macOf(key, bytes), key: keys.current }),
  );
}

/**
 * Opens a message from the bus. Nothing but its authentication code is looked at before that holds, because whoever is
 * inside the bus can send anything.
 */
export function openMessage(bytes: Uint8Array, facts: OpenFacts): Opened {
  const message = parse(bytes);
  if (message === undefined) return refused("malformed");
  const key = facts.keys.keys.get(message.key);
  if (key === undefined || !isMac(message.mac, macOf(key, message.body))) return refused("forged");
  const body = parseBody(message.body);
  if (body === undefined || body.message.case === undefined || body.time === undefined) return refused("malformed");
  if (body.to !== facts.to) return { ok: false, why: "misdirected", own: false };
  if (body.from === facts.self) return { ok: false, why: "misdirected", own: true };
  if (Math.abs(timestampMs(body.time) - facts.now) > MAX_AGE_MS) return refused("stale");
  return { ok: true, body };
}

function refused(why: Exclude<RefusedWhy, "misdirected">): Opened {
  return { ok: false, why };
}

function macOf(key: Uint8Array, body: Uint8Array): Buffer {
  return createHmac("sha256", key).update(DOMAIN).update(body).digest();
}

function isMac(given: Uint8Array, wanted: Uint8Array): boolean {
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function parse(bytes: Uint8Array): ReplicaMessage | undefined {
  try {
    return fromBinary(ReplicaMessageSchema, bytes);
  } catch {
    return undefined;
  }
}

function parseBody(bytes: Uint8Array): ReplicaBody | undefined {
  try {
    return fromBinary(ReplicaBodySchema, bytes);
  } catch {
    return undefined;
  }
}
