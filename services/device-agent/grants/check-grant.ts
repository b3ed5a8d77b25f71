import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ExecuteCommand } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type Grant, GrantPurpose, GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import type { BatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import {
  type BadArguments,
  MAX_ARGUMENT_BYTES,
  readCanonicalArguments,
} from "../../../lib/tool/canonical-arguments.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import { type Refusal, refusal } from "../refusal.ts";

/** How far the clocks of policy and device may be apart, in milliseconds. */
export const CLOCK_SKEW_MS = 30_000;

/** The longest that a grant may be valid, in milliseconds. */
export const MAX_GRANT_LIFETIME_MS = 5 * 60_000;

/** The version of the grant's form, by its purpose. A device that knows only runs refuses the others by it. */
const GRANT_VERSIONS: ReadonlyMap<number, number> = new Map([
  [GrantPurpose.UNSPECIFIED, 1],
  [GrantPurpose.PREVIEW, 2],
]);

/** What a grant is checked against. */
export interface GrantFacts {
  /** Verifies grants by the pinned keys. */
  verifier: BatchVerifier;
  deviceId: string;
  /** The tools that the device knows, offered or not, by name. */
  tools: ReadonlyMap<string, Pick<ToolSpec, "schemaDigest" | "capabilities">>;
  /** The digest of the active manifest, in hex. */
  manifestDigest: string;
  /** By the device's clock, in milliseconds since 1970. */
  nowMs: number;
}

/** A valid grant, with what was read while checking it. */
export interface GoodGrant {
  kind: "ok";
  grant: Grant;
  /** When the grant ends for this device, skew included, in milliseconds since 1970. */
  endsMs: number;
  /** The parsed arguments. */
  value: JsonObject;
  /** SHA-256 of the arguments' bytes, in hex. */
  argsDigest: string;
}

/**
 * Checks that a grant permits exactly this call, on this device, now. Cheap checks come first, and nothing of the grant
 * is read before its signature was found good, nothing of the arguments before their digest. Whether the grant was used
 * before is the ledger's to say. Pure but for the verifier's memory of good signatures.
 *
 * Order: size, envelope, version and form, device, time, tool and schema, arguments, manifest, call.
 */
export function checkGrant(start: ExecuteCommand, facts: GrantFacts): GoodGrant | Refusal {
  if (start.arguments.length > MAX_ARGUMENT_BYTES) return tooLarge();
  const signed = facts.verifier.verify(start.grant);
  if (!signed.ok) return invalid(`the grant cannot be trusted: ${signed.kind.replaceAll("_", " ")}`);
  const grant = decode(signed.statement);
  if (grant === undefined) return invalid("the grant cannot be read");
  const argsDigest = sha256Hex(start.arguments);
  const refused =
    checkForm(grant) ??
    checkDevice(grant, facts) ??
    checkTime(grant, facts) ??
    checkTool(grant, start, facts) ??
    (grant.argsDigest === argsDigest ? undefined : wrong("the grant is for other arguments"));
  if (refused !== undefined) return refused;
  const args = readCanonicalArguments(start.arguments);
  if (!args.ok) return badArguments(args);
  const endsMs = msOf(grant.expireTime) + CLOCK_SKEW_MS;
  return (
    checkManifest(grant, facts) ??
    checkCall(grant, start) ?? { kind: "ok", value: args.value, grant, endsMs, argsDigest }
  );
}

function badArguments({ field, rule, message }: BadArguments): Refusal {
  return refusal(ErrorReason.INVALID_INPUT, `${field}: ${message}`, { field, rule }, [{ field, message }]);
}

function checkForm(grant: Grant): Refusal | undefined {
  const version = GRANT_VERSIONS.get(grant.purpose);
  if (version === undefined) return invalid("the grant is for a purpose that this device does not know");
  if (grant.version !== version) return invalid(`the grant is of version ${grant.version}, not ${version}`);
  if (!/^[0-9a-f]{32}$/.test(grant.grantId)) return invalid("the grant has no proper id");
  const lifetime = msOf(grant.expireTime) - msOf(grant.notBefore);
  // Also false where one of the times is missing.
  return lifetime > 0 && lifetime <= MAX_GRANT_LIFETIME_MS
    ? undefined
    : invalid("the grant's time is not within its limits");
}

function checkDevice(grant: Grant, facts: GrantFacts): Refusal | undefined {
  if (grant.deviceId === facts.deviceId) return undefined;
  return refusal(ErrorReason.GRANT_WRONG_DEVICE, "the grant is for another device", { audience: grant.deviceId });
}

function checkTime(grant: Grant, { nowMs }: GrantFacts): Refusal | undefined {
  const from = msOf(grant.notBefore);
  const until = msOf(grant.expireTime);
  if (nowMs >= from - CLOCK_SKEW_MS && nowMs < until + CLOCK_SKEW_MS) return undefined;
  const message = nowMs < from ? "the grant is not valid yet" : "the grant is not valid any more";
  return expired(grant, message);
}

/** The refusal for a grant outside its time. */
export function expired(grant: Grant, message: string): Refusal {
  const metadata = { not_before: textOf(grant.notBefore), expires: textOf(grant.expireTime) };
  return refusal(ErrorReason.GRANT_EXPIRED, message, metadata);
}

function checkTool(grant: Grant, start: ExecuteCommand, facts: GrantFacts): Refusal | undefined {
  if (grant.tool !== start.tool) return wrong("the grant is for another tool");
  const tool = facts.tools.get(grant.tool);
  if (tool === undefined) {
    const available = [...facts.tools.keys()].sort().join(", ");
    return refusal(ErrorReason.UNKNOWN_TOOL, "there is no such tool", { tool: grant.tool, available });
  }
  if (grant.schemaDigest !== tool.schemaDigest) return wrong("the grant is for another version of the tool");
  // Policy decided about less than what would be done.
  const more = tool.capabilities.filter((one) => !grant.capabilities.includes(one));
  return more.length === 0 ? undefined : wrong(`the tool needs more than the grant names: ${more.join(", ")}`);
}

function checkManifest(grant: Grant, facts: GrantFacts): Refusal | undefined {
  if (grant.manifestDigest === facts.manifestDigest) return undefined;
  return refusal(ErrorReason.MANIFEST_REFUSED, "the device's manifest has changed since the grant");
}

function checkCall(grant: Grant, start: ExecuteCommand): Refusal | undefined {
  return grant.callId === start.callId ? undefined : replayed(grant.grantId, "the grant is for another call");
}

/** The refusal for a grant that belongs to another call. */
export function replayed(grantId: string, message: string): Refusal {
  return refusal(ErrorReason.GRANT_REPLAYED, message, { jti: grantId });
}

function tooLarge(): Refusal {
  const limit = String(MAX_ARGUMENT_BYTES);
  return refusal(ErrorReason.INPUT_TOO_LARGE, `the arguments are larger than ${limit} bytes`, {
    limit,
    field: "arguments",
  });
}

function invalid(message: string): Refusal {
  return refusal(ErrorReason.GRANT_INVALID, message);
}

function wrong(message: string): Refusal {
  return refusal(ErrorReason.GRANT_WRONG_ARGUMENTS, message);
}

function decode(statement: Uint8Array): Grant | undefined {
  try {
    return fromBinary(GrantSchema, statement);
  } catch {
    return undefined;
  }
}

/** NaN where there is none, so that every comparison with it is false. */
function msOf(time: Timestamp | undefined): number {
  return time === undefined ? Number.NaN : timestampMs(time);
}

function textOf(time: Timestamp | undefined): string {
  const ms = msOf(time);
  // A signed time may still lie beyond what a Date can hold.
  return Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : "none";
}
