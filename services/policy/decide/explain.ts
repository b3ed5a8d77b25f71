import { create } from "@bufbuild/protobuf";
import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type ExplainResponse, ExplainResponseSchema } from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import type { Judge } from "./judge.ts";

/** What the decision about a call would be, and why. Records nothing and grants nothing. */
export function explain(judge: Judge, request: DecisionRequest): ExplainResponse {
  const { judgment, policy } = judge(request);
  return create(ExplainResponseSchema, {
    effect: judgment.effect,
    rules: judgment.trace,
    message: judgment.message,
    policyVersion: policy.version,
  });
}
