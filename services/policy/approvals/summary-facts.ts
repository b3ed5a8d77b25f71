import { IngressSchema } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { roleName } from "../../../lib/auth/roles.ts";
import { redactSecretFields } from "../../../lib/tool/redact.ts";
import type { Evaluation } from "../evaluate/evaluate.ts";
import type { ValidatedRequest } from "../facts/decision-request.ts";
import { valueName } from "../facts/facts.ts";
import { analysisLines } from "./analysis-lines.ts";
import { previewLines } from "./preview-lines.ts";
import type { SummaryFacts } from "./summary.ts";

/** The facts of a held call's summary: secrets are redacted here, and are not known any more after it. Pure. */
export function summaryFactsOf(
  call: ValidatedRequest,
  { message, ruleIds }: Pick<Evaluation, "message" | "ruleIds">,
): SummaryFacts {
  const { request, principal, device, tool, args, argsDigest, timeoutMs, inputSchema, command } = call;
  const shown = inputSchema && redactSecretFields(args, inputSchema);
  return {
    deviceName: device.name,
    deviceId: device.id,
    devices: request.devices.map(({ id, name }) => ({ id, name })),
    tool: tool.name,
    capabilities: tool.capabilities,
    principalId: principal.id,
    principalName: principal.name,
    roles: principal.roles.map((role) => roleName(role) ?? "unknown"),
    ingress: valueName(IngressSchema, request.ingress),
    purpose: request.purpose,
    message,
    ruleIds,
    args: shown,
    analysis: analysisLines(command, args, shown, inputSchema),
    preview: previewLines(call),
    argsDigest,
    timeoutMs,
  };
}
