import { create, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { type CallToolRequest, CallToolRequestSchema } from "../../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail } from "../../../../lib/fault/fault.ts";
import { assertValid } from "../../../../lib/server/interceptors/validate.ts";
import { waitMsOf } from "./wait.ts";

/** The request headers (gRPC: metadata) of a typed call, by the field of CallToolRequest that each stands for. */
export const CALL_HEADERS = {
  device: "reeve-device",
  callId: "reeve-call-id",
  purpose: "reeve-purpose",
  approvalWait: "reeve-wait-ms",
  client: "reeve-client",
} as const;

const validator = createValidator();

/**
 * The call that a typed request asks for. What CallService/CallTool has in its request comes in headers, all of
 * which may be left out, and is held to the same rules. INVALID_INPUT names the header.
 *
 * @param remainingMs until the caller's deadline; undefined where it has none.
 */
export function callRequestOf(
  tool: string,
  params: JsonObject,
  header: Headers,
  remainingMs: number | undefined,
): CallToolRequest {
  const request = create(CallToolRequestSchema, {
    tool,
    params,
    device: header.get(CALL_HEADERS.device) ?? "",
    callId: header.get(CALL_HEADERS.callId) ?? "",
    purpose: header.get(CALL_HEADERS.purpose) ?? "",
    client: header.get(CALL_HEADERS.client) ?? "",
    approvalWait: durationFromMs(waitMsOf(requestedWait(header), remainingMs)),
  });
  assertHeaders(request);
  return request;
}

function requestedWait(header: Headers): number | undefined {
  const text = header.get(CALL_HEADERS.approvalWait);
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalid([{ field: CALL_HEADERS.approvalWait, message: "must be a number of milliseconds" }], "type");
}

/** Only what came in headers: the tool's name is ours, and its arguments are checked as such. */
function assertHeaders({ device, callId, purpose, approvalWait, client }: CallToolRequest): void {
  const wait = approvalWait && { approvalWait };
  const headers = create(CallToolRequestSchema, { tool: "-", device, callId, purpose, client, ...wait });
  try {
    assertValid(validator, CallToolRequestSchema, headers);
  } catch (error: unknown) {
    const detail = faultDetail(error);
    if (detail === undefined) throw error;
    const names = new Map<string, string>(Object.entries(CALL_HEADERS));
    const violations = detail.violations.map(({ field, message }) => ({ field: names.get(field) ?? field, message }));
    throw invalid(violations, detail.metadata.rule ?? "");
  }
}

function invalid(violations: { field: string; message: string }[], rule: string): Error {
  const message = violations.map((one) => `${one.field}: ${one.message}`).join("; ");
  return fault(ErrorReason.INVALID_INPUT, { field: violations[0]?.field ?? "", rule }, { violations, message });
}
