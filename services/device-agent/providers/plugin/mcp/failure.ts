import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { ErrorReason } from "../../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../../lib/fault/fault.ts";
import { cleanText } from "../../../../../lib/toolschema/announced-tool.ts";
import { serverFailed } from "./result.ts";

/** Codes of node for a connection that was never made. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/**
 * What a call's error is: an answer of the server, which is TOOL_FAILED{service,code}; START_FAILED{program,cause} where the call
 * never left; else INTERRUPTED, because the server may have acted on it.
 *
 * @param why why the connection ended; empty where it has not.
 */
export function callFailure(service: string, error: unknown, why: string): Error {
  if (error instanceof ProtocolError) return serverFailed(service, String(error.code), error.message);
  if (error instanceof SdkHttpError) return serverFailed(service, `http_${error.data.status}`, "");
  if (error instanceof SdkError && ANSWERED.has(error.code)) return serverFailed(service, error.code, error.message);
  const cause = causeOf(error);
  if (cause !== undefined) {
    const message = `the MCP server ${service} cannot be reached (${cause}), so nothing ran`;
    return fault(ErrorReason.START_FAILED, { program: service, cause }, { message, cause: error });
  }
  const words = cleanText((why || (error instanceof Error ? error.message : String(error))).slice(0, 500));
  const message = `the MCP server ${service} ended while the call was with it; what it did is not known (${words})`;
  return fault(ErrorReason.INTERRUPTED, {}, { message, cause: error });
}

/** Errors of the SDK about an answer that came. */
const ANSWERED: ReadonlySet<string> = new Set([SdkErrorCode.InvalidResult, SdkErrorCode.UnsupportedResultType]);

function causeOf(error: unknown): string | undefined {
  // The SDK says so in two ways.
  if (error instanceof Error && error.message === "Not connected") return "closed";
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { code } = at as NodeJS.ErrnoException;
    if (code !== undefined && NOT_CONNECTED.has(code)) return code;
  }
  return undefined;
}
