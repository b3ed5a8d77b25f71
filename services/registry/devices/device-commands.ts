import { create } from "@bufbuild/protobuf";
import { type DeviceCommand, DeviceCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** A command that has an answer: the end of a call. */
export type CallCommand = Extract<DeviceCommand["command"], { case: "execute" | "reconcile" }>;

/** Says in a command how much of its call's output may be sent. */
export function askForOutput({ command }: DeviceCommand, untilBytes: bigint | undefined): void {
  if (untilBytes === undefined || (command.case !== "execute" && command.case !== "reconcile")) return;
  command.value.outputUntilBytes = untilBytes;
}

/** The command that says how much of a call's output a device may send in all; 0 for no more. */
export function followOf(callId: string, outputUntilBytes: bigint): DeviceCommand {
  return create(DeviceCommandSchema, { command: { case: "follow", value: { callId, outputUntilBytes } } });
}

export function cancelOf(callId: string): DeviceCommand {
  return create(DeviceCommandSchema, { command: { case: "cancel", value: { callId } } });
}
