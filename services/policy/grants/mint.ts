import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs, durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CallApproval } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { Signed } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import {
  type Obligations as GrantObligations,
  ObligationsSchema,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Grant, GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { type CallAnalysis, planDigest } from "../../../lib/command/call.ts";
import type { BatchSigner } from "../../../lib/sign/batch.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";
import type { Obligations } from "../rules/obligations.ts";

export interface MintedGrant {
  signed: Signed;
  grantId: string;
  /** Not valid from then on, in milliseconds since 1970. */
  expireMs: number;
  obligations?: GrantObligations | undefined;
}

export interface GrantMinter {
  /** Signs a grant from a template, valid from now for so many milliseconds, under a new id; of the approval that released it. */
  mint(template: Grant, ttlMs: number, approval?: CallApproval): Promise<MintedGrant>;
}

export interface GrantMinterOptions {
  signer: BatchSigner;
  /** Who issues the grants. */
  issuer: string;
  now: () => number;
  /** 128 random bits in hex. */
  newGrantId: () => string;
}

/** Programs that act by themselves have no operator's place on a device, whatever their roles. */
const UNATTENDED: ReadonlySet<Ingress> = new Set([Ingress.LLM, Ingress.WORKFLOW]);

/** Everything in a grant that is known when the call is decided: no id, times, issuer or approver. */
export function grantTemplate({ request, principal, device, tool, argsDigest, preview }: ValidatedRequest): Grant {
  return create(GrantSchema, {
    version: 1,
    deviceId: device.id,
    callId: request.callId,
    tool: tool.name,
    schemaDigest: tool.schemaDigest,
    capabilities: tool.capabilities,
    argsDigest,
    manifestDigest: device.manifestDigest,
    principalId: principal.id,
    ...(request.timeout && { timeout: request.timeout }),
    isOperator: principal.roles.includes(Role.OPERATOR) && !UNATTENDED.has(request.ingress),
    ...(preview && { previewId: request.preview?.previewId ?? "", previewDigest: preview.digest }),
  });
}

/** The template of a call whose approver was shown a preview: the device has to find the same. */
export function withPreview(
  template: Grant,
  { previewId, previewDigest }: Pick<Grant, "previewId" | "previewDigest">,
): Grant {
  return { ...template, previewId, previewDigest };
}

/**
 * The template of a call that no person approved, with what the rules that allow it ask of it. Where they ask for a sandbox, a
 * command that may run without being asked about is executed as its plan, and as nothing else.
 */
export function withObligations(
  template: Grant,
  { maxRunMs, sandbox }: Obligations,
  { plan }: Pick<CallAnalysis, "plan">,
): Grant {
  const timeoutMs = template.timeout ? durationMs(template.timeout) : 0;
  const isLonger = maxRunMs !== undefined && (timeoutMs === 0 || timeoutMs > maxRunMs);
  if (!isLonger && sandbox === undefined) return template;
  const limit = isLonger ? durationFromMs(maxRunMs) : undefined;
  const obligations = create(ObligationsSchema, {
    ...(limit !== undefined && { maxRun: limit }),
    ...(sandbox !== undefined && { sandbox }),
  });
  const isApart = sandbox !== undefined && sandbox > SandboxLevel.NONE;
  return {
    ...template,
    ...(limit !== undefined && { timeout: limit }),
    ...(isApart && plan !== undefined && { planDigest: planDigest(plan) }),
    obligations,
  };
}

/** A minter on a batch signer: grants of one moment share a signature. */
export function createGrantMinter({ signer, issuer, now, newGrantId }: GrantMinterOptions): GrantMinter {
  return {
    async mint(template, ttlMs, approval) {
      const notBefore = now();
      const expireMs = notBefore + ttlMs;
      const grant: Grant = {
        ...template,
        issuer,
        grantId: newGrantId(),
        notBefore: timestampFromMs(notBefore),
        expireTime: timestampFromMs(expireMs),
        ...(approval && { approvalId: approval.id, approverIds: [approval.decidedBy] }),
      };
      const signed = await signer.sign(toBinary(GrantSchema, grant));
      return { signed, grantId: grant.grantId, expireMs, obligations: grant.obligations };
    },
  };
}
