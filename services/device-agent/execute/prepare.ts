import type { JsonObject } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { GrantPurpose } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { analyzeCall, planDigest } from "../../../lib/command/call.ts";
import type { Plan } from "../../../lib/command/plan/plan.ts";
import { blockReason } from "../../../lib/command/tools.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { type InputProblem, invalidInput } from "../../../lib/fault/invalid-input.ts";
import { requestedTimeoutMs } from "../../../lib/tool/deadline.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import type { Executor } from "../executor/executor.ts";
import { type Isolation, meets, stricter } from "../executor/sandbox/isolation.ts";
import { floorOf } from "../executor/sandbox/levels.ts";
import type { GoodGrant } from "../grants/check-grant.ts";
import type { UnavailableTool } from "../providers/provider.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { Roots } from "../roots/roots.ts";
import type { DeviceTool, ToolContext } from "../tools/tool.ts";
import { makePreview, type Previewed, previewedBy } from "./previews.ts";

/** What the device allows at one moment, as the active manifest says it. */
export interface OfferedTools {
  /** The tools that may be called. */
  tools: ReadonlyMap<string, DeviceTool>;
  /** The tools that this device knows, offered or not. */
  known: ReadonlyMap<string, ToolSpec>;
  /** Tools that the machine cannot run, by name. */
  unavailable: ReadonlyMap<string, UnavailableTool>;
  /** The digest of the active manifest, in hex. */
  manifestDigest: string;
  /** What the owner's manifest demands of every call. Undefined: there is none. */
  owner?: OwnerDemands | undefined;
}

/** What the owner's manifest demands of every call. */
export interface OwnerDemands {
  /** From when on every call is refused, in milliseconds since 1970. */
  expiresMs: number;
  /** How far every program has to be kept apart at least. */
  floor: Isolation;
}

/** A call that nothing speaks against any more. */
export interface PreparedCall {
  kind: "prepared";
  /** Runs the tool with its input, or makes its preview. Throws faults. */
  run(context: ToolContext): Promise<JsonObject>;
  /** The preview that the approver was shown, which has to hold still. Undefined where none was. */
  previewed: Previewed | undefined;
  /** The longest it may take, in milliseconds. */
  timeoutMs: number;
  /** Whether it runs without a place. */
  immediate: boolean;
  /** How far its programs have to be kept apart at least. */
  floor: Isolation;
  /** What the owner's manifest demands of it. */
  owner: OwnerDemands | undefined;
  /** What its command is executed as. Undefined: as its arguments say. */
  plan: Plan | undefined;
  /** How far the program is kept apart that does its work; undefined where the call itself starts it. */
  elsewhere: Isolation | undefined;
}

/** What a device can do for a call, whatever the tool. */
export interface DeviceMeans {
  executor: Pick<Executor, "isolation" | "shortfall">;
  roots: Pick<Roots, "granted" | "workDir">;
  /** Milliseconds since 1970. */
  now(): number;
}

/**
 * Everything that must hold besides the grant, which was found good: the manifest offers the tool, the arguments fit
 * its input, the blocklist has nothing against them, whatever the grant says, the device makes the plan of them that the grant
 * names, and it can keep what the tool runs as far apart as the grant demands. Pure.
 */
export function prepareCall(
  good: GoodGrant,
  offered: OfferedTools,
  { executor, roots, now }: DeviceMeans,
): PreparedCall | Refusal {
  const { grant, value } = good;
  const { owner } = offered;
  const expired = ownerExpired(owner, now());
  if (expired !== undefined) return expired;
  const tool = offered.tools.get(grant.tool);
  if (tool === undefined) return notOffered(grant.tool, offered);
  const prepared = tool.prepare(value);
  if (!prepared.ok) return invalid(prepared.problems);
  const { preview } = prepared;
  const isPreview = grant.purpose === GrantPurpose.PREVIEW;
  if (preview === undefined && (isPreview || grant.previewDigest !== ""))
    return refusal(ErrorReason.NOT_AVAILABLE, `${grant.tool} has no preview on this device`, { tool: grant.tool });
  const block = blockReason(tool.spec.inputSchema, value);
  if (block !== undefined) return refusal(ErrorReason.POLICY_BLOCKED, block.message, { rules: block.rule });
  const wanted = floorOf(grant.obligations?.sandbox);
  const floor = wanted && stricter(wanted, owner?.floor ?? "none");
  const unmet = whyUnmet(floor, tool, executor);
  if (floor === undefined || unmet !== undefined) return unavailable(floor, unmet);
  const plan = planOf(good, tool, roots);
  if (plan !== undefined && "kind" in plan) return plan;
  const timeoutMs = requestedTimeoutMs(tool.spec.inputSchema, value) || tool.spec.defaultTimeoutMs;
  return {
    kind: "prepared",
    run: preview !== undefined && isPreview ? (context) => makePreview(preview, context) : prepared.run,
    previewed: preview && previewedBy(grant, preview),
    immediate: tool.immediate === true,
    timeoutMs: shortest(grant.timeout ? durationMs(grant.timeout) : 0, timeoutMs),
    floor,
    owner,
    plan,
    elsewhere: tool.elsewhere,
  };
}

/** The plan that the grant names, made anew from the arguments; a refusal where they come to another one here. */
function planOf(
  { grant, value }: GoodGrant,
  { spec }: DeviceTool,
  { granted, workDir }: DeviceMeans["roots"],
): Plan | Refusal | undefined {
  if (grant.planDigest === "") return undefined;
  const roots = granted.map(({ path }) => path);
  const { plan } = analyzeCall(spec.inputSchema, value, { roots, workDir, platform: process.platform });
  if (plan !== undefined && planDigest(plan) === grant.planDigest) return plan;
  return refusal(
    ErrorReason.GRANT_WRONG_ARGUMENTS,
    "the grant is for another plan than the device makes of the command",
  );
}

function whyUnmet(
  floor: Isolation | undefined,
  tool: DeviceTool,
  executor: Pick<Executor, "isolation" | "shortfall">,
): string | undefined {
  if (floor === undefined || floor === "none") return undefined;
  if (tool.elsewhere === undefined) return meets(executor.isolation, floor) ? undefined : executor.shortfall;
  if (meets(tool.elsewhere, floor)) return undefined;
  return `a program does its work that no call starts, and that runs at the level ${tool.elsewhere}`;
}

function unavailable(floor: Isolation | undefined, why = "it is not known to this version of the agent"): Refusal {
  const required = floor ?? "unknown";
  const message = `the call may run only at the sandbox level ${required}, which this device cannot keep: ${why}`;
  return refusal(ErrorReason.SANDBOX_UNAVAILABLE, message, { required });
}

/** The refusal of every call once the owner's manifest has expired. */
export function ownerExpired(owner: OwnerDemands | undefined, nowMs: number): Refusal | undefined {
  if (owner === undefined || nowMs < owner.expiresMs) return undefined;
  const { expiresMs } = owner;
  const time = new Date(expiresMs).toISOString();
  const message = `the owner's manifest of this device has expired on ${time}: its owner signs a new edition, and starts the agent`;
  return refusal(ErrorReason.MANIFEST_REFUSED, message, { expire_time: time });
}

function notOffered(tool: string, { unavailable, known }: OfferedTools): Refusal {
  const missing = unavailable.get(tool);
  if (missing !== undefined) {
    const { program, why } = missing;
    return refusal(ErrorReason.NOT_AVAILABLE, `${tool} is not available on this device: ${why}`, { tool, program });
  }
  const spec = known.get(tool);
  const capability = spec === undefined ? "" : spec.capabilities.join(", ");
  return refusal(ErrorReason.MANIFEST_REFUSED, `the device's manifest does not offer ${tool}`, { capability });
}

function invalid(problems: readonly InputProblem[]): Refusal {
  const error = invalidInput(problems);
  const { reason, metadata, violations } = faultDetail(error) ?? { reason: ErrorReason.INVALID_INPUT };
  return refusal(
    reason,
    error.rawMessage,
    { ...metadata },
    violations?.map(({ field, message }) => ({ field, message })),
  );
}

/** A grant of 0 ms sets no limit of its own. */
function shortest(grantMs: number, toolMs: number): number {
  return grantMs === 0 ? toolMs : Math.min(grantMs, toolMs);
}
