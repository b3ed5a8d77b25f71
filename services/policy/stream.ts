import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { CallOutcome, DeviceIdentity } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Decision, DecisionRequest } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
  type PolicyRequestFrame,
  type PolicyResponseFrame,
  PolicyResponseFrameSchema,
} from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { type Responder, respondTo } from "../../lib/exchange/respond.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { missingField } from "../../lib/fault/invalid-input.ts";
import { mapStream } from "../../lib/link/stream.ts";
import { outageFault } from "../../lib/store/outage.ts";

/** What the frames of a stream are answered by. */
export interface StreamHandlers {
  authorize(request: DecisionRequest): Promise<Decision>;
  /** Rejects when the signal aborts. */
  awaitApproval(approvalId: string, signal: AbortSignal): Promise<Decision>;
  /** Resolves with the index of the outcome's record. */
  recordOutcome(outcome: CallOutcome): Promise<number>;
  /** Resolves with the index of the change's record. */
  recordDeviceIdentity(change: DeviceIdentity): Promise<number>;
  /** Resolves when there is a version above the known one. Rejects when the signal aborts. */
  awaitKeyring(knownVersion: bigint, signal: AbortSignal): Promise<readonly SignedEnvelope[]>;
  /** Receives a failure that is no fault; the caller sees only that there was one. */
  onError(error: unknown): void;
}

/** Serves PolicyService.Exchange. A request that fails gets a typed error and harms no other. */
export function serveStream(
  requests: AsyncIterable<ExchangeRequest>,
  handlers: StreamHandlers,
  signal: AbortSignal,
): AsyncIterable<ExchangeResponse> {
  const batches = mapStream(requests, ({ frames }) => frames);
  return mapStream(respondTo(batches, responder(handlers), signal), (frames) =>
    create(ExchangeResponseSchema, { frames }),
  );
}

function responder(handlers: StreamHandlers): Responder<PolicyRequestFrame, PolicyResponseFrame> {
  return {
    idOf: ({ id }) => id,
    canceledId: ({ request }) => (request.case === "cancel" ? request.value.requestId : undefined),
    mayWait,
    async respond(frame, signal) {
      const { id, trace, request } = frame;
      const response = await responseTo(request, handlers, signal).catch((e: unknown) => {
        if (signal.aborted && mayWait(frame)) throw e;
        return errorOf(e, handlers);
      });
      return create(PolicyResponseFrameSchema, { id, response, ...(trace && { trace }) });
    },
  };
}

function mayWait({ request }: PolicyRequestFrame): boolean {
  return request.case === "awaitApproval" || request.case === "awaitKeyring";
}

type Response = NonNullable<Parameters<typeof create<typeof PolicyResponseFrameSchema>>[1]>["response"] & object;

async function responseTo(
  request: PolicyRequestFrame["request"],
  handlers: StreamHandlers,
  signal: AbortSignal,
): Promise<Response> {
  switch (request.case) {
    case "authorize":
      return { case: "decision", value: await handlers.authorize(request.value) };
    case "awaitApproval":
      return { case: "decision", value: await handlers.awaitApproval(request.value.approvalId, signal) };
    case "recordOutcome":
      return recorded(await handlers.recordOutcome(request.value));
    case "recordDeviceIdentity":
      return recorded(await handlers.recordDeviceIdentity(request.value));
    case "awaitKeyring": {
      const keyrings = await handlers.awaitKeyring(request.value.knownVersion, signal);
      return { case: "keyrings", value: { keyrings: [...keyrings] } };
    }
    default:
      throw missingField("request");
  }
}

function recorded(index: number): Response {
  return { case: "recorded", value: { auditIndex: BigInt(index) } };
}

function errorOf(error: unknown, handlers: StreamHandlers): Response {
  if (!faultDetail(error)) handlers.onError(error);
  const known = outageFault(error) ?? error;
  const detail = faultDetail(known);
  const shown: ErrorDetail = detail ?? create(ErrorDetailSchema, { reason: ErrorReason.INTERNAL });
  const message = detail && known instanceof ConnectError ? known.rawMessage : "internal error";
  return { case: "error", value: { error: shown, message } };
}
