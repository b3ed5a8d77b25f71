import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ApprovalService } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { KeyService } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { type LinkRequest, type LinkResponse, PolicyService } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { shortName } from "../../lib/ids/short-name.ts";
import type { LinkOpener } from "../../lib/link/opener.ts";
import { principalOf } from "../../lib/server/context.ts";
import { toolByName } from "../../lib/toolschema/catalog-file.ts";
import { getApproval, listApprovals } from "./approvals/read.ts";
import { watchApprovals } from "./approvals/watch.ts";
import { proveConsistency, proveInclusion } from "./audit/proofs.ts";
import type { Components } from "./components.ts";
import { awaitKeyring } from "./keys/await-keyring.ts";
import { keyHandlers } from "./keys/key-handlers.ts";
import { type Answerers, serveLink } from "./stream.ts";

/** Registers policy's RPCs. */
export function policyRoutes(components: Components): (router: ConnectRouter) => void {
  return (router) => {
    router.service(PolicyService, policyHandlers(components));
    router.service(ApprovalService, approvalHandlers(components));
    router.service(AuditService, auditHandlers(components));
    router.service(KeyService, keyHandlers(components.keys, components.rotator));
  };
}

/** Policy's end of a stream for a caller, whether it came through the RPC or is in the same process. */
export function openLink(components: Components, actor: string): LinkOpener<LinkRequest, LinkResponse> {
  const { authorizer, approvals, outcomes, deviceChanges, keys, shutdown, onError } = components;
  const answerers: Answerers = {
    authorize: authorizer.authorize,
    awaitApproval: approvals.waits.await,
    recordOutcome: (outcome) => outcomes.record(outcome, actor),
    recordDeviceIdentity: (change) => deviceChanges.record(change, actor),
    awaitKeyring: (known, signal) => awaitKeyring(keys, known, signal),
    onError,
  };
  return (requests, signal) => serveLink(requests, answerers, AbortSignal.any([signal, shutdown.signal]));
}

function policyHandlers(components: Components) {
  const { authorizer, evaluate, source, keys } = components;
  return {
    authorize: async ({ request }) => ({ decision: await authorizer.authorize(required(request)) }),
    explain({ request }) {
      const { evaluation, policy } = evaluate(required(request));
      const { effect, trace, message } = evaluation;
      return { effect, rules: trace, message, policyVersion: policy.version };
    },
    getPolicy() {
      const { policy, loadMs, refused } = source.current();
      return { text: policy.text, version: policy.version, loadTime: timestampFromMs(loadMs), refused };
    },
    getGrantKey: () => ({ publicKey: keys.current().grantKey.raw, checkpointKey: keys.current().vkeys }),
    link: (requests, context) => openLink(components, principalOf(context).id)(requests, context.signal),
  } satisfies ServiceImpl<typeof PolicyService>;
}

function approvalHandlers({ storage: { db }, approvals, source, shutdown }: Components) {
  const { store, requests, resolver, changes } = approvals;
  return {
    getApproval: ({ approvalId, view }) => getApproval({ db, store, requests, lookup: toolByName }, approvalId, view),
    listApprovals: (request) => listApprovals(db, store, request),
    async approve({ approvalId, cardDigest, wholeDigest, comment, channel }, context) {
      const { fourEyes } = source.current().policy;
      const decision = { approvalId, comment, channel, ...deciderIn(context) };
      return {
        approval: await resolver.approve({ ...decision, summaryDigest: cardDigest, fullDigest: wholeDigest, fourEyes }),
      };
    },
    async deny({ approvalId, comment, channel }, context) {
      return { approval: await resolver.deny({ approvalId, comment, channel, ...deciderIn(context) }) };
    },
    async *watchApprovals(_, context) {
      const signal = AbortSignal.any([context.signal, shutdown.signal]);
      for await (const approval of watchApprovals({ db, store, changes, signal })) yield { approval };
    },
  } satisfies ServiceImpl<typeof ApprovalService>;
}

function deciderIn(context: HandlerContext): { decidedBy: string; decidedByName: string } {
  const { id, name } = principalOf(context);
  return { decidedBy: id, decidedByName: shortName(name) };
}

function auditHandlers({ audit, keys, storage }: Components) {
  return {
    listRecords: (request) => audit.reader.list(request),
    async getCheckpoint() {
      // Alone, the newest is as new as any; another replica may be about to sign what the caller has just caused.
      const checkpoint = await (storage.shared ? audit.checkpoints.covering() : audit.checkpoints.newest());
      return { ...(checkpoint && { checkpoint }), verifierKey: keys.current().vkeys };
    },
    getInclusionProof: ({ index }) => proveInclusion(audit.proofs, Number(index)),
    getConsistencyProof: ({ first, second }) => proveConsistency(audit.proofs, Number(first), Number(second)),
  } satisfies ServiceImpl<typeof AuditService>;
}

function required<T>(value: T | undefined): T {
  if (value !== undefined) return value;
  throw fault(ErrorReason.INVALID_INPUT, { field: "request", rule: "required" }, { message: "request is required" });
}
