import type { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";

/** What a call has to keep to that a rule allows and no person approved. Empty: nothing. */
export interface Obligations {
  /** The longest that it may run, in milliseconds. */
  maxRunMs?: number;
  /** The least that its programs are kept apart: levels have the order of their numbers. */
  sandbox?: SandboxLevel;
}

/** All of them together: where several rules state one, the strictest counts. Pure. */
export function strictest(all: readonly Obligations[]): Obligations {
  const runs = all.flatMap(({ maxRunMs }) => maxRunMs ?? []);
  const sandbox = all.reduce<SandboxLevel | undefined>(
    (most, { sandbox: one }) => ((one ?? 0) > (most ?? 0) ? one : most),
    undefined,
  );
  return {
    ...(runs.length > 0 && { maxRunMs: Math.min(...runs) }),
    ...(sandbox !== undefined && { sandbox }),
  };
}
