import { ErrorReason } from "../../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../../../../lib/fault/fault.ts";
import type { HeldEntry } from "../../../roots/held.ts";
import type { HeldParent, Roots } from "../../../roots/roots.ts";

/** The need of an undo. A path comes from the call's entry, so a fault names the call. */
export const NEED = { access: "write", field: "call" } as const;

/** What a path names now, held, or undefined where it names nothing. Throws the other faults of Roots. */
export async function withPath<T>(
  path: string,
  roots: Roots,
  action: (entry: HeldEntry | undefined, place: HeldParent | undefined) => Promise<T>,
): Promise<T> {
  using place = parentOf(path, roots);
  using entry = place?.look();
  return await action(entry, place);
}

/** The folder that a path's last name is in; undefined where that is gone. */
function parentOf(path: string, roots: Roots): HeldParent | undefined {
  try {
    return roots.openParent(path, NEED);
  } catch (error: unknown) {
    if (reasonOf(error) === ErrorReason.TARGET_NOT_FOUND) return undefined;
    throw error;
  }
}
