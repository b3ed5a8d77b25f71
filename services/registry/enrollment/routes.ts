import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { EnrollmentService } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { callerAddress } from "../../../lib/server/connections.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { confirmEnrollment } from "./confirm.ts";
import { createJoinToken, requirePki } from "./create-join-token.ts";
import { join } from "./join.ts";
import { listEnrollments, toAuthority } from "./list.ts";
import { lockDevice, removeDevice, unlockDevice } from "./lock.ts";
import type { EnrollmentParts } from "./parts.ts";
import { renewCertificate } from "./renew.ts";

/** The RPCs of enrollment. */
export function enrollmentRoutes(parts: EnrollmentParts): ServiceImpl<typeof EnrollmentService> {
  return {
    createJoinToken: (request, context) => createJoinToken(parts, request, principalOf(context).id),
    join: (request, context) => join(parts, request, callerAddress(context.values)),
    renewCertificate: (request, context) => renewCertificate(parts, request, principalOf(context).id, context.signal),
    listEnrollments: (request) => listEnrollments(parts, request),
    confirmEnrollment: async (request, context) => ({
      enrollment: await confirmEnrollment(parts, request, principalOf(context).id),
    }),
    lockDevice: async ({ device, why }, context) => ({
      enrollment: await lockDevice(parts, { device, why, actor: principalOf(context).id }),
    }),
    unlockDevice: async ({ device }, context) => ({
      enrollment: await unlockDevice(parts, { device, actor: principalOf(context).id }),
    }),
    removeDevice: async ({ device, why }, context) => ({
      enrollment: await removeDevice(parts, { device, why, actor: principalOf(context).id }),
    }),
    listAuthorities: async () => ({ authorities: (await parts.pki?.authorities.list())?.map(toAuthority) ?? [] }),
    rotateAuthority: async (_, context) => ({ authority: await rotateAuthority(parts, principalOf(context).id) }),
  };
}

async function rotateAuthority(parts: EnrollmentParts, actor: string) {
  const { authorities } = requirePki(parts);
  const id = await authorities.rotate(actor);
  const made = (await authorities.list()).find((row) => row.id === id);
  if (made === undefined) throw fault(ErrorReason.INTERNAL, {}, { message: "the new authority is gone" });
  return toAuthority(made);
}
