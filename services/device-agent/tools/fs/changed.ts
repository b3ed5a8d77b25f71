import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";

/** The fault for a path that is not what the call goes by any more. Nothing was changed. */
export function changed(path: string, field: string, why: string): Error {
  return fault(ErrorReason.PRECONDITION_CHANGED, { field, path }, { message: `${path} ${why}: nothing was changed` });
}
