import { type DescMethodUnary, type JsonObject, toJson } from "@bufbuild/protobuf";
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { Ingress } from "../../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { principalOf } from "../../../../lib/server/context.ts";
import { BUILT_IN_SERVICES, toolMethods } from "../../../../lib/toolschema/built-in.ts";
import { callTool } from "../../calls/call-tool.ts";
import type { Calls } from "../../calls/calls.ts";
import type { GovernedCall } from "../../calls/governed-call.ts";
import { faceOf } from "../../calls/ingress.ts";
import { responseOf } from "./end.ts";
import { callRequestOf } from "./metadata.ts";
import { orAborted } from "./wait.ts";

/** The services of the typed face, as reflection lists them. */
export const TYPED_SERVICES = BUILT_IN_SERVICES;

/** Headers of an answer: the call, and the record of what policy decided about it in the audit log. */
const CALL_ID_HEADER = "reeve-call-id";
const AUDIT_INDEX_HEADER = "reeve-audit-index";

/**
 * The tools as the RPCs that define them: `reeve.tools.v1.FileSystem/Read` is a call of fs.read like any other, on the
 * device that the header reeve-device names.
 */
export function serveTypedTools(router: ConnectRouter, calls: Calls): void {
  for (const [tool, method] of toolMethods(TYPED_SERVICES)) {
    router.rpc(method, (input, context) => answer(tool, method, input, context, calls));
  }
}

async function answer(
  tool: string,
  method: DescMethodUnary,
  input: Parameters<typeof toJson>[1],
  context: HandlerContext,
  calls: Calls,
) {
  const params = toJson(method.input, input) as JsonObject;
  const request = callRequestOf(tool, params, context.requestHeader, context.timeoutMs());
  const { signal } = context;
  // A caller that leaves changes nothing: what is held stays held, and what runs goes on.
  const { call } = await orAborted(
    callTool(calls, request, principalOf(context), signal, faceOf(context, Ingress.RPC)),
    signal,
  );
  describe(call, context.responseHeader);
  return responseOf(method.output, call);
}

function describe(call: GovernedCall, header: Headers): void {
  header.set(CALL_ID_HEADER, call.id);
  if (call.status.decision !== undefined) header.set(AUDIT_INDEX_HEADER, String(call.status.decision.auditIndex));
}
