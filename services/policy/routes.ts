import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ApprovalService } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { KeyService } from "../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { Effect } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  PolicyService,
} from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { missingField } from "../../lib/fault/invalid-input.ts";
import { shortName } from "../../lib/ids/short-name.ts";
import type { StreamFactory } from "../../lib/link/stream.ts";
import { principalOf } from "../../lib/server/context.ts";
import { toolByName } from "../../lib/toolschema/catalog-file.ts";
import { getApproval, listApprovals } from "./approvals/read.ts";
import { watchApprovals } from "./approvals/watch.ts";
import { proveConsistency, proveInclusion } from "./audit/proofs.ts";
import type { Components } from "./components.ts";
import { awaitKeyring, keyHandlers } from "./keys/key-handlers.ts";
import type { Effect as RuleEffect } from "./rules/policy.ts";
import { type StreamHandlers, serveStream } from "./stream.ts";

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
export function openStream(components: Components, actor: string): StreamFactory<ExchangeRequest, ExchangeResponse> {
  const { authorizer, approvals, outcomes, deviceChanges, keys, shutdown, onError } = components;
  const handlers: StreamHandlers = {
    authorize: authorizer.authorize,
    awaitApproval: approvals.waits.await,
    recordOutcome: (outcome) => outcomes.record(outcome, actor),
    recordDeviceIdentity: (change) => deviceChanges.record(change, actor),
    awaitKeyring: (known, signal) => awaitKeyring(keys, known, signal),
    onError,
  };
  return (requests, signal) => serveStream(requests, handlers, AbortSignal.any([signal, shutdown.signal]));
}

const EFFECT_VALUES: Readonly<Record<RuleEffect, Effect>> = {
  block: Effect.BLOCK,
  deny: Effect.DENY,
  hold: Effect.HOLD,
  allow: Effect.ALLOW,
};

function policyHandlers(components: Components) {
  const { authorizer, evaluate, source } = components;
  return {
    authorize: async ({ request }) => ({ decision: await authorizer.authorize(required(request)) }),
    explain({ request }) {
      const { evaluation, policy } = evaluate(required(request));
      const { maxRunMs, sandbox } = evaluation.obligations;
      const obligations = {
        ...(maxRunMs !== undefined && { maxRun: durationFromMs(maxRunMs) }),
        ...(sandbox !== undefined && { sandbox }),
      };
      return {
        effect: EFFECT_VALUES[evaluation.effect],
        rules: evaluation.trace.map((step) => ({ ...step, effect: EFFECT_VALUES[step.effect] })),
        message: evaluation.message,
        policyVersion: policy.version,
        ...(Object.keys(obligations).length > 0 && { obligations }),
      };
    },
    getPolicy() {
      const { policy, loadMs, refused } = source.current();
      return { text: policy.text, version: policy.version, loadTime: timestampFromMs(loadMs), refused };
    },
    exchange: (requests, context) => openStream(components, principalOf(context).id)(requests, context.signal),
  } satisfies ServiceImpl<typeof PolicyService>;
}

function approvalHandlers({ storage: { db }, approvals, source, shutdown }: Components) {
  const { store, requests, resolver, changes } = approvals;
  return {
    getApproval: ({ approvalId, view }) => getApproval({ db, store, requests, lookup: toolByName }, approvalId, view),
    listApprovals: (request) => listApprovals(db, store, request),
    async approve({ approvalId, summaryDigest, fullTextDigest, comment, channel }, context) {
      const { fourEyes } = source.current().policy;
      const decision = { approvalId, comment, channel, ...deciderIn(context) };
      return {
        approval: await resolver.approve({
          ...decision,
          summaryDigest: summaryDigest,
          fullDigest: fullTextDigest,
          fourEyes,
        }),
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
  throw missingField("request");
}
