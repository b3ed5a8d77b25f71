import type { JsonObject } from "@bufbuild/protobuf";
import { CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { stateName } from "./call-progress.ts";
import { type CallClient, callTool } from "./call-tool.ts";
import type { CompleteCall } from "./complete-call.ts";
import { errorOf, reasonName } from "./errors.ts";

/**
 * What a rule or a scheduled job wants done: pure data, which an engine can emit, store and compare as any other action. It
 * grants nothing; the gate decides about the call that it becomes, by the rules for workflows.
 */
export interface ToolCallAction {
  /** The tool's name, such as "exec". */
  readonly tool: string;
  /** The device, by id or name. Default: the only one, or the registry's default. */
  readonly device?: string;
  /** The tool's arguments. Default none. */
  readonly args?: JsonObject;
}

/** What an action is done for. The same origin is the same call, however often it is run, so that a firing acts once. */
export type ActionOrigin =
  | {
      /** The rule that emitted the action. */
      readonly rule: string;
      /** What it matched, such as a message's id: unique for the rule. */
      readonly idempotencyKey: string;
    }
  | {
      /** The job that is due. */
      readonly job: string;
      /** The time that it was scheduled for, not the time at which it runs. */
      readonly scheduledTime: Date;
    };

/** How to run an action. */
export interface ActionOptions {
  /** Why, for the person who decides. Default: the rule or the job. */
  purpose?: string;
  /** How long a held call is waited for, in milliseconds. Default 0: its result is "held", and it goes on by itself. */
  approvalWaitMs?: number;
  /** Aborting it cancels the call. */
  signal?: AbortSignal;
}

/** What came of an action. Nothing is thrown for what the gate or the device answers. */
export type ActionResult =
  /** The tool ran. What it returned is untrusted. */
  | { readonly kind: "succeeded"; readonly callId: string; readonly output: JsonObject }
  /** It did not come to a good end: the tool failed, ran too long or was canceled, or the request never became a call. */
  | ({ readonly kind: "failed" } & Refused)
  /** A person has to decide. It runs once it is approved; run the same action again for its end. */
  | { readonly kind: "held"; readonly callId: string; readonly approvalId: string }
  /** The device is offline, and the call waits for it. */
  | { readonly kind: "queued"; readonly callId: string }
  /** Policy or a person denied it, or no person decided in time. Nothing ran. */
  | ({ readonly kind: "denied" } & Refused)
  /** The blocklist has it: no rule and no person can allow it. Nothing ran. */
  | ({ readonly kind: "blocked" } & Refused)
  /** Whether it ran cannot be known. Do not repeat it under another key without looking. */
  | ({ readonly kind: "unknown" } & Refused);

/** Why an action did not succeed. */
export interface Refused {
  /** The call's id, also where it never became one. */
  readonly callId: string;
  /** The reason's short name, such as "policy_denied". */
  readonly reason: string;
  /** Safe to show. */
  readonly message: string;
}

/**
 * Runs an action as a governed call and resolves with what came of it. The call's id follows from the origin, so running the same
 * again, after a crash or on another machine, returns the same call and runs nothing twice. Rejects only where the origin has
 * no key.
 *
 * @param client a client with a token of its own: `reeve token create --role workflow`.
 */
export async function runToolCallAction(
  client: CallClient,
  { tool, device = "", args = {} }: ToolCallAction,
  origin: ActionOrigin,
  { purpose = purposeOf(origin), approvalWaitMs = 0, signal }: ActionOptions = {},
): Promise<ActionResult> {
  const callId = await actionCallId(origin);
  const request = { callId, tool, device, params: args, purpose, client: "workflow" };
  try {
    const call = await callTool(client, request, { approvalWaitMs, ...(signal && { signal }) });
    return resultOf(call);
  } catch (error: unknown) {
    const { reason, name, message } = errorOf(error);
    const kind = UNKNOWN_REASONS.has(reason) ? "unknown" : "failed";
    return { kind, callId, reason: name, message };
  }
}

/** The id of an origin's call: the rule or the job, for people, and what makes it unique. */
export async function actionCallId(origin: ActionOrigin): Promise<string> {
  const [name, key] =
    "rule" in origin ? [origin.rule, origin.idempotencyKey] : [origin.job, origin.scheduledTime.toISOString()];
  if (name === "" || key === "")
    throw new TypeError("an action needs a rule or a job, and a key that is unique for it");
  const kind = "rule" in origin ? "rule" : "job";
  const bytes = new TextEncoder().encode(JSON.stringify([kind, name, key]));
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)).slice(0, 12);
  const hex = Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${name.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 15)}-${hex}`;
}

/** The connection was lost for good, so that the call's end is not known. */
const UNKNOWN_REASONS: ReadonlySet<ErrorReason> = new Set([ErrorReason.UNSPECIFIED, ErrorReason.INTERRUPTED]);

function purposeOf(origin: ActionOrigin): string {
  return "rule" in origin ? `rule ${origin.rule}` : `job ${origin.job}`;
}

function resultOf({ id: callId, status }: CompleteCall): ActionResult {
  const { state, error, approval, output } = status;
  const why: Refused = {
    callId,
    reason: error === undefined ? stateName(state) : reasonName(error.reason),
    message: status.errorMessage || stateName(state),
  };
  switch (state) {
    case CallState.SUCCEEDED:
      return { kind: "succeeded", callId, output: output ?? {} };
    case CallState.HELD:
      return { kind: "held", callId, approvalId: approval?.id ?? "" };
    case CallState.QUEUED:
      return { kind: "queued", callId };
    case CallState.DENIED:
    case CallState.EXPIRED:
      return { kind: error?.reason === ErrorReason.POLICY_BLOCKED ? "blocked" : "denied", ...why };
    case CallState.FAILED:
    case CallState.TIMED_OUT:
    case CallState.CANCELED:
      return { kind: "failed", ...why };
    default:
      return { kind: "unknown", ...why };
  }
}
