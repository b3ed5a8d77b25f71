import { fromBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Decision, DecisionSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Grant, GrantPurpose } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import type { HeldQuota } from "./approvals/held-quota.ts";
import { notHoldable } from "./approvals/holdable.ts";
import type { AuditLog } from "./audit/log.ts";
import { decidedRecord } from "./decisions/decision.ts";
import { type DecidedRow, decisionRows } from "./decisions/decision-rows.ts";
import { type DecisionStore, decisionKey } from "./decisions/decision-store.ts";
import type { Evaluated } from "./evaluate/evaluate.ts";
import { isFanOut } from "./facts/decision-request.ts";
import { type GrantMinter, grantTemplate } from "./grants/mint.ts";
import { type RecordedWrites, RollBack } from "./storage/recorded-writes.ts";
import type { PolicyDatabase } from "./storage/tables.ts";

/** The longest that a device may look, in milliseconds: a caller waits for it. */
const LONGEST_MS = 10_000;

export interface PreviewFirstOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  decisions: DecisionStore;
  heldQuota: HeldQuota;
  log: AuditLog;
  minter: GrantMinter;
  now: () => number;
}

/**
 * The permission to look, for a call that would be held and whose approver was not shown yet what it is about: a decision of its own,
 * with a record and a grant for nothing but the preview. Asked again it is the same, byte for byte. Undefined where there is
 * nothing to look at first: the tool has no preview, it was asked for already, the call is a fan-out, will be denied, or is
 * decided.
 */
export type PreviewFirst = (evaluated: Evaluated, digest: string) => Promise<Decision | undefined>;

/** Previews on policy's database. */
export function createPreviewFirst(options: PreviewFirstOptions): PreviewFirst {
  const { db, writes, decisions, heldQuota, minter } = options;
  const rows = decisionRows(options.log, decisions);
  return async (evaluated, digest) => {
    const { call, policy } = evaluated;
    const { request } = call;
    if (!call.hasPreview || request.preview !== undefined || isFanOut(request)) return undefined;
    if ((notHoldable(call) ?? (await heldQuota.over(db, call))) !== undefined) return undefined;
    const decided = decisionKey(request);
    if ((await decisions.find(db, decided)) !== undefined) return undefined;
    const key = `${decided}#preview`;
    const known = await decisions.find(db, key);
    if (known !== undefined) return known.digest === digest ? fromBinary(DecisionSchema, known.decision) : undefined;
    const previewId = previewIdOf(decided);
    const minted = await minter.mint(previewTemplate(grantTemplate(call), previewId), policy.grantTtlMs);
    const head = { ruleIds: evaluated.evaluation.ruleIds, policyVersion: policy.version };
    const { grantId } = minted;
    const record = decidedRecord(call, { ...head, kind: "preview", reason: 0, grantId, nowMs: options.now() });
    const outcome = { kind: "preview", minted, previewId } as const;
    const row: DecidedRow = { callId: request.callId, key, digest, record, listed: "here", head, outcome };
    return writes.writeRow(rows, row).catch((error: unknown) => {
      // Another asked at the same time, or the call has ended: what follows finds out which.
      if (error instanceof RollBack) return undefined;
      throw error;
    });
  };
}

/** The id under which a device makes a preview. No caller can choose it: ids of calls hold no "#". */
function previewIdOf(decided: string): string {
  return `preview#${sha256Hex(decided).slice(0, 40)}`;
}

function previewTemplate(template: Grant, previewId: string): Grant {
  const timeout = durationFromMs(LONGEST_MS);
  return { ...template, version: 2, purpose: GrantPurpose.PREVIEW, callId: previewId, timeout };
}
