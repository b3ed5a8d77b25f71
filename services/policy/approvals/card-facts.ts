import { roleName } from "../../../lib/auth/roles.ts";
import { redactSecretFields } from "../../../lib/tool/redact.ts";
import type { Judged } from "../decide/judge.ts";
import { sourceName } from "../decide/request-facts.ts";
import type { CardFacts } from "./card.ts";

/** What of a held call its card is made from. */
export type HeldFacts = Pick<Judged, "whole" | "args" | "argsDigest" | "inputSchema"> & {
  judgment: Pick<Judged["judgment"], "message" | "ruleIds">;
};

/** The facts of a held call's card: secrets are taken out here, and nowhere after it are they known. Pure. */
export function cardFactsOf({ whole, args, argsDigest, judgment, inputSchema }: HeldFacts): CardFacts {
  const { request, principal, device, tool } = whole;
  return {
    deviceName: device.name,
    deviceId: device.id,
    devices: request.devices.map(({ id, name }) => ({ id, name })),
    tool: tool.name,
    capability: tool.capability,
    principalId: principal.id,
    principalName: principal.name,
    roles: principal.roles.map((role) => roleName(role) ?? "unknown"),
    source: sourceName(request.source),
    purpose: request.purpose,
    message: judgment.message,
    ruleIds: judgment.ruleIds,
    args: inputSchema && redactSecretFields(args, inputSchema),
    argsDigest,
    timeoutMs: request.timeoutMs,
  };
}
