import { create } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  OutputKept,
  type OutputRead,
  OutputReadSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { DeviceLink } from "../devices/device-link.ts";
import type { ReadOutput } from "../devices/output-reads.ts";
import type { GovernedCall } from "./governed-call.ts";

/** What the device of a call keeps of what it printed, as the device says it: untrusted, and not sanitized. */
export interface OutputSource {
  /** Rejects with DEVICE_OFFLINE where the device does not answer. */
  read(what: Omit<ReadOutput, "callId">): Promise<OutputRead>;
}

/** A call that was never sent has printed nothing, and its device is not asked. */
export function outputSource(
  found: { readonly call: GovernedCall },
  link: (deviceId: string) => DeviceLink | undefined,
): OutputSource {
  return {
    async read(what) {
      const { id: callId, spec, status } = found.call;
      if (status.grantId === "") {
        const summary = { kept: OutputKept.YES, open: false, chunks: 0 };
        return create(OutputReadSchema, { callId, nextSequence: what.fromSequence, summary });
      }
      const device = link(spec.deviceId);
      if (device !== undefined) return device.readOutput({ ...what, callId });
      const message = "the device is not known any more, and the call's output with it";
      throw fault(ErrorReason.DEVICE_OFFLINE, { device: spec.deviceName }, { message });
    },
  };
}
