import { create } from "@bufbuild/protobuf";
import {
  type GetConsistencyProofResponse,
  GetConsistencyProofResponseSchema,
  type GetInclusionProofResponse,
  GetInclusionProofResponseSchema,
} from "../../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { type Checkpoint, InclusionProofSchema } from "../../../gen/ts/reeve/audit/v1/checkpoint_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { consistencyPlan, inclusionPlan, isLeafIndex, isTreeSize } from "../../../lib/merkle/plan.ts";
import { formatTlogProof } from "../../../lib/sign/tlog-proof.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import type { Checkpointer } from "./checkpoints.ts";
import type { LogReader } from "./entries.ts";
import type { TreeStore } from "./tree.ts";

export interface ProofSources {
  db: PolicyDatabase;
  tree: TreeStore;
  reader: LogReader;
  checkpoints: Pick<Checkpointer, "newest" | "covering">;
}

/**
 * Proves that the record at an index is under the newest checkpoint; where it is not yet, a checkpoint is signed now, by
 * this replica or another. Throws NOT_FOUND for an index that the log does not hold, and NOT_READY where no replica signs
 * in time.
 */
export async function proveInclusion(sources: ProofSources, index: number): Promise<GetInclusionProofResponse> {
  const entry = isTreeSize(index) ? await sources.reader.entry(index) : undefined;
  if (!entry) throw notFound(`records/${index}`);
  const checkpoint = await checkpointOver(sources, index);
  const size = Number(checkpoint.size);
  const path = await sources.tree.prove(sources.db, inclusionPlan(index, size));
  return create(GetInclusionProofResponseSchema, {
    proof: create(InclusionProofSchema, { index: BigInt(index), size: checkpoint.size, path, checkpoint }),
    entry,
    text: formatTlogProof({ index, path, checkpoint: checkpoint.note }),
  });
}

/**
 * Proves that the log of `second` records (0: those of the newest checkpoint) begins with the log of `first`.
 * Throws INVALID_INPUT where first is above second and NOT_FOUND where the log is not that long.
 */
export async function proveConsistency(
  sources: ProofSources,
  first: number,
  second: number,
): Promise<GetConsistencyProofResponse> {
  const checkpoint = second === 0 ? await sources.checkpoints.newest() : undefined;
  const later = checkpoint ? Number(checkpoint.size) : second;
  if (!isTreeSize(later) || later > (await sources.tree.size(sources.db))) throw notFound(`checkpoints/${later}`);
  if (!isTreeSize(first) || first > later) throw invalidField("first", "lte", `must be from 1 to ${later}`);
  const path = await sources.tree.prove(sources.db, consistencyPlan(first, later));
  return create(GetConsistencyProofResponseSchema, { path, ...(checkpoint && { checkpoint }) });
}

async function checkpointOver({ checkpoints }: ProofSources, index: number): Promise<Checkpoint> {
  const checkpoint = await checkpoints.covering(index + 1);
  if (checkpoint && isLeafIndex(index, Number(checkpoint.size))) return checkpoint;
  const message = "no checkpoint covers the record yet; ask again in a few seconds";
  throw fault(ErrorReason.NOT_READY, {}, { message });
}

function notFound(resource: string): Error {
  return fault(ErrorReason.NOT_FOUND, { resource }, { message: `the log has no ${resource}` });
}
