import type { Run } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { seesAll } from "../../../lib/auth/scoped-id.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { RunStore } from "./store.ts";

type Store = Pick<RunStore, "get">;

/** A run that the principal may see. Throws NOT_FOUND. */
export async function visibleRun(store: Store, runId: string, principal: Principal): Promise<Run> {
  const run = await store.get(runId);
  if (run !== undefined && (seesAll(principal) || run.principalId === principal.id)) return run;
  throw fault(ErrorReason.NOT_FOUND, { resource: `runs/${runId}` }, { message: `no run ${runId}` });
}

/** A run that the principal may change: its own, or as an operator any. Throws NOT_FOUND and ROLE_REQUIRED. */
export async function changeableRun(store: Store, runId: string, principal: Principal): Promise<Run> {
  const run = await visibleRun(store, runId, principal);
  if (run.principalId === principal.id || principal.roles.includes(Role.OPERATOR)) return run;
  const message = `the run ${runId} is another principal's: an operator may change it`;
  throw fault(ErrorReason.ROLE_REQUIRED, { roles: "operator" }, { message });
}
