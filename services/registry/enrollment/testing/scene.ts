import { DeviceIdentityChange } from "../../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { faultDetail, reasonName, reasonOf } from "../../../../lib/fault/fault.ts";
import { peerWith, type TestDevice, testDevice } from "./test-device.ts";
import type { TestEnrollment } from "./test-enrollment.ts";

const changeNames = new Map<number, string>(
  Object.entries(DeviceIdentityChange).map(([name, change]) => [change, name.toLowerCase()]),
);

/** What was refused, and why, such as "JOIN_REFUSED used"; "done" where nothing was. */
export const refusal = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "done",
    (error: unknown) => {
      const why = faultDetail(error)?.metadata.why;
      return `${reasonName(reasonOf(error)).toUpperCase()} ${why ?? ""}`.trim();
    },
  );

/** What people and devices do in the tests, with the enrollment of the moment. */
export function sceneOf(plane: () => TestEnrollment) {
  const invite = (name = "web1", options: { autoConfirm?: boolean; replace?: boolean } = {}) =>
    plane().operator.createJoinToken({ name, labels: { role: "web" }, ...options });
  return {
    invite,
    /** Makes a machine a device, without an operator. */
    async enroll(device: TestDevice = testDevice(), name = "web1", options: { replace?: boolean } = {}) {
      const { token, enrollment } = await invite(name, { autoConfirm: true, ...options });
      const joined = await plane().anybody.join(await device.joining(token));
      return { device, token, id: enrollment?.id ?? "", chain: joined.certificateChain };
    },
    /** The changes in the audit log. */
    changes: () => plane().records.map(({ change }) => changeNames.get(change)),
    /** Shows a certificate. */
    attach: (device: TestDevice, chain: string) => plane().enrollment.checkPeer(peerWith(chain, device.id)),
  };
}
