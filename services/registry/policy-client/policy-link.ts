import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { CallOutcome, DeviceIdentity } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Decision, DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import {
  AwaitApprovalFrameSchema,
  AwaitKeyringFrameSchema,
  type ExchangeRequest,
  ExchangeRequestSchema,
  type ExchangeResponse,
  type PolicyRequestFrame,
  PolicyRequestFrameSchema,
  type PolicyResponseFrame,
} from "../../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createExchange, forEver, type Patience, untilAborted } from "../../../lib/exchange/exchange.ts";
import { fault, isRetryable } from "../../../lib/fault/fault.ts";
import { mapStream, type StreamFactory } from "../../../lib/link/stream.ts";

/** Opens a stream to policy. */
export type PolicyDialer = StreamFactory<ExchangeRequest, ExchangeResponse>;

/** The registry's requests to policy: many on one stream, each sent again after an interruption until it is answered. */
export interface PolicyLink {
  /**
   * Decides about a call. POLICY_UNAVAILABLE when no response came within the time limit. While policy does not respond at
   * all, the stream is opened at once and a new call waits half a second for it; one that was sent when the stream ended
   * waits the whole time, because policy may have decided about it.
   */
  authorize(request: DecisionRequest): Promise<Decision>;
  /** Waits for as long as it takes until a held call is decided. Rejects with the signal's reason when it aborts. */
  awaitApproval(approvalId: string, signal: AbortSignal): Promise<Decision>;
  /** Writes down how a call ended and returns the record's index. Waits for policy for as long as it takes. */
  recordOutcome(outcome: CallOutcome): Promise<bigint>;
  /** Writes down what became of a device's identity and returns the record's index. Waits as long as it takes. */
  recordIdentity(change: DeviceIdentity): Promise<bigint>;
  /**
   * The keyrings for grants, as soon as there is a version above the known one: those that lead to the newest, the oldest
   * first. Rejects with the signal's reason when it aborts.
   */
  awaitKeyring(knownVersion: bigint, signal: AbortSignal): Promise<readonly SignedEnvelope[]>;
  /** Whether policy answers on the stream that is open. */
  readonly up: boolean;
  /** Whether it has not for half a second, longer than a link takes to be made anew. */
  readonly unavailable: boolean;
  close(): Promise<void>;
}

/** From a response that says to try again to the next request, in milliseconds. */
const RETRY_MS = 500;

/** How long a stream that ended, or is new, has until policy counts as unavailable, and a new call waits for it. Milliseconds. */
const GRACE_MS = 500;

type Request = PolicyRequestFrame["request"];
type Response = PolicyResponseFrame["response"];

/**
 * @param options.timeoutMs how long `authorize` waits for a response, interruptions included. Default 10000.
 */
export function createPolicyLink(dialer: PolicyDialer, options: { timeoutMs?: number } = {}): PolicyLink {
  // Every request can be sent twice: policy answers a call id it knows with the decision it made.
  const exchange = createExchange<Request, PolicyRequestFrame, PolicyResponseFrame>({
    open(batches, signal) {
      const requests = mapStream(batches, (frames) => create(ExchangeRequestSchema, { frames }));
      return mapStream(dialer(requests, signal), ({ frames }) => frames);
    },
    frame: (id, request) => create(PolicyRequestFrameSchema, { id, request }),
    cancel: (requestId) => create(PolicyRequestFrameSchema, { request: { case: "cancel", value: { requestId } } }),
    idOf: ({ id }) => id,
    // One that policy answers at once: there is always a keyring above version 0.
    probe: awaitKeyring(0n),
    sizeOf: ({ request }) => (request.case === "authorize" ? sizeOf(request.value) : 512),
  });
  const request = async (body: Request, patience: Patience) => (await exchange.request(body, patience)).response;

  return {
    get up() {
      return exchange.up;
    },
    get unavailable() {
      return exchange.downMs >= GRACE_MS;
    },
    async authorize(decisionRequest) {
      if (!exchange.up) exchange.hurry();
      const patience: Patience = (reject) => {
        const giveUp = () => reject(unavailable());
        const timer = setTimeout(giveUp, options.timeoutMs ?? 10_000);
        const grace = exchange.up ? undefined : setTimeout(() => exchange.up || giveUp(), GRACE_MS);
        return () => {
          clearTimeout(timer);
          clearTimeout(grace);
        };
      };
      return decisionOf(await request({ case: "authorize", value: decisionRequest }, patience));
    },
    async awaitApproval(approvalId, signal) {
      signal.throwIfAborted();
      for (;;) {
        const response = await request(awaitApproval(approvalId), untilAborted(signal));
        // No person has denied it because policy's database was unavailable for a moment.
        if (response.case !== "error" || !isRetryable(errorOf(response))) return decisionOf(response);
        await sleep(RETRY_MS, undefined, { signal });
      }
    },
    async recordOutcome(value) {
      return indexOf(await request({ case: "recordOutcome", value }, forEver));
    },
    async recordIdentity(value) {
      return indexOf(await request({ case: "recordDeviceIdentity", value }, forEver));
    },
    async awaitKeyring(knownVersion, signal) {
      signal.throwIfAborted();
      const response = await request(awaitKeyring(knownVersion), untilAborted(signal));
      if (response.case === "keyrings") return response.value.keyrings;
      throw errorOf(response);
    },
    // What waits is left open: the next start asks again.
    close: () => exchange.close(),
  };
}

function awaitApproval(approvalId: string): Request {
  return { case: "awaitApproval", value: create(AwaitApprovalFrameSchema, { approvalId }) };
}

function awaitKeyring(knownVersion: bigint): Request {
  return { case: "awaitKeyring", value: create(AwaitKeyringFrameSchema, { knownVersion }) };
}

/** About how large a request for a decision is, in bytes. */
function sizeOf({ arguments: args, tool, devices }: DecisionRequest): number {
  return args.length + (tool?.inputSchema.length ?? 0) + 2048 + devices.length * 512;
}

function decisionOf(response: Response): Decision {
  if (response.case === "decision") return response.value;
  throw errorOf(response);
}

function indexOf(response: Response): bigint {
  if (response.case === "recorded") return response.value.auditIndex;
  throw errorOf(response);
}

function errorOf(response: Response): Error {
  if (response.case !== "error") return fault(ErrorReason.INTERNAL, {}, { message: "policy sent no response" });
  const { error, message } = response.value;
  return fault(error?.reason ?? ErrorReason.INTERNAL, error?.metadata ?? {}, { message });
}

function unavailable(): Error {
  return fault(
    ErrorReason.POLICY_UNAVAILABLE,
    {},
    { message: "policy does not answer, and without a decision on record nothing runs" },
  );
}
