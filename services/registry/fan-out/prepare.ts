import { isDeepStrictEqual } from "node:util";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault, faultDetail } from "../../../lib/fault/fault.ts";
import type { CallRequest, ReceivedCall } from "../calls/receive.ts";
import type { PlannedDevice } from "./plan.ts";

/** Turns a request into a call without writing anything. Throws what is wrong with it. */
export type Receive = (request: CallRequest) => ReceivedCall | Promise<ReceivedCall>;

/**
 * Checks the call on every device before anything starts, and makes the question about the fan-out. Throws the first
 * problem, with the device in its message and metadata; tools that differ from device to device are one, since an approval
 * is for one tool with one set of arguments.
 *
 * @param requests the call on each device, at least one.
 */
export async function prepareAll(
  fanOutId: string,
  requests: readonly { device: PlannedDevice; request: CallRequest }[],
  receive: Receive,
): Promise<DecisionRequest> {
  const questions: DecisionRequest[] = [];
  for (const { device, request } of requests) {
    const { question } = await receiveOn(device, request, receive);
    const [first] = questions;
    if (first !== undefined && !sameWork(first, question)) throw differs(device, requests[0]?.device);
    questions.push(question);
  }
  const [first] = questions;
  if (first?.tool === undefined) throw new TypeError("a fan-out has a device");
  const requiresApproval = questions.some(({ tool }) => tool?.requiresApproval);
  return {
    ...first,
    callId: fanOutId,
    tool: { ...first.tool, requiresApproval },
    devices: questions.flatMap(({ device }) => device ?? []),
  };
}

async function receiveOn(device: PlannedDevice, request: CallRequest, receive: Receive): Promise<ReceivedCall> {
  try {
    return await receive(request);
  } catch (error: unknown) {
    const detail = faultDetail(error);
    if (detail === undefined) throw error;
    const message = `${device.name}: ${ConnectError.from(error).rawMessage}`;
    throw fault(
      detail.reason,
      { ...detail.metadata, device: device.name },
      { message, violations: detail.violations, cause: error },
    );
  }
}

function timeoutMsOf({ timeout }: DecisionRequest): number {
  return timeout ? durationMs(timeout) : 0;
}

function sameWork(one: DecisionRequest, other: DecisionRequest): boolean {
  return (
    one.tool?.schemaDigest === other.tool?.schemaDigest &&
    isDeepStrictEqual(one.tool?.capabilities, other.tool?.capabilities) &&
    timeoutMsOf(one) === timeoutMsOf(other) &&
    Buffer.from(one.arguments).equals(other.arguments)
  );
}

function differs(device: PlannedDevice, first: PlannedDevice | undefined): Error {
  const message = `${device.name} has another version of the tool than ${first?.name}; call them apart`;
  return fault(ErrorReason.INVALID_INPUT, { field: "tool", rule: "same", device: device.name }, { message });
}
