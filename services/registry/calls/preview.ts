import { create } from "@bufbuild/protobuf";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ExecuteCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import {
  type CallPreview,
  CallPreviewSchema,
  type DecisionRequest,
  type PreviewPermit,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { cleanOutput } from "../../../lib/sanitize/sanitize.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { readPreview } from "../../../lib/tool/preview.ts";
import type { DeviceEnd, DeviceLink } from "../devices/device-link.ts";
import { acceptFinished } from "./end.ts";
import type { ExecutionPorts } from "./execution.ts";

/** What previews depend on. */
export type PreviewPorts = Pick<ExecutionPorts, "device" | "link">;

/** The longest that a device is waited for, in milliseconds: its grant lets it look for 10 s. */
const WAIT_MS = 12_000;

/** How much of a device's own words is shown, in UTF-16 code units. */
const SAID = 300;

/**
 * Has a device say what the arguments of a call stand for, before the call is held. It is a call of its own on the device, with its
 * own grant, receipt and entry in the ledger, and the same again after a restart. Never rejects: without a preview the answer
 * says why, for the approver.
 */
export async function previewCall(
  question: DecisionRequest,
  permit: PreviewPermit,
  ports: PreviewPorts,
  signal: AbortSignal,
): Promise<CallPreview> {
  const device = ports.device(question.device?.id ?? "");
  const link = device?.online ? ports.link(device.id) : undefined;
  if (device === undefined || link === undefined) return none("the device is offline");
  const { previewId } = permit;
  const tool = question.tool?.name ?? "";
  const end = await lookWithin(link, question, permit, signal);
  if (end?.kind !== "finished") return none("the device did not answer in time");
  const argsDigest = sha256Hex(question.arguments);
  const { state, message } = acceptFinished(
    end.finished,
    { id: previewId, spec: { deviceId: device.id, tool, argsDigest } },
    device,
  );
  if (state !== CallState.SUCCEEDED) return none(`the device gave none: ${cleanOutput(message).text.slice(0, SAID)}`);
  const { output } = end.finished;
  return readPreview(output) === undefined
    ? none("the device sent none that can be read")
    : create(CallPreviewSchema, { previewId, facts: output });
}

/** Undefined where the device takes too long, or the call was canceled. */
async function lookWithin(
  link: DeviceLink,
  { tool, arguments: args }: DecisionRequest,
  { previewId: callId, grant }: PreviewPermit,
  signal: AbortSignal,
): Promise<DeviceEnd | undefined> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(WAIT_MS)]);
  const { promise: left, resolve } = Promise.withResolvers<undefined>();
  const leave = (): void => {
    link.cancel(callId);
    resolve(undefined);
  };
  if (over.aborted) return undefined;
  over.addEventListener("abort", leave, { once: true });
  // No output of it is shown, and nothing waits for a reader.
  const command = create(ExecuteCommandSchema, {
    ...{ callId, tool: tool?.name ?? "", arguments: args, outputUntilBytes: 0n },
    ...(grant && { grant }),
  });
  const end = await Promise.race([link.start(command, () => undefined), left]);
  over.removeEventListener("abort", leave);
  return end;
}

function none(missing: string): CallPreview {
  return create(CallPreviewSchema, { missing: missing.toWellFormed() });
}
