import type { JsonObject, Message } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { blockReason } from "../../../lib/blocklist/blocklist.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { decodeInput } from "../../../lib/serve/decode-input.ts";
import type { GoodGrant } from "../grants/check-grant.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { ToolEntry, UnavailableTool } from "../tools/index.ts";

/** What the device lets be done, as its manifest says it. */
export interface OfferedTools {
  /** The tools that may be called. */
  tools: ReadonlyMap<string, ToolEntry>;
  /** Tools that this program has, offered or not. */
  known: ReadonlyMap<string, ToolEntry>;
  /** Tools that the machine cannot run, by name. */
  unavailable: ReadonlyMap<string, UnavailableTool>;
}

/** A call that nothing speaks against any more. */
export interface PreparedCall {
  kind: "prepared";
  entry: ToolEntry;
  /** The decoded, validated input. */
  input: Message;
  /** The longest it may take, in milliseconds. */
  timeoutMs: number;
}

/**
 * Everything that must hold besides the grant, which was found good: the manifest offers the tool, the arguments fit
 * its input, and the blocklist has nothing against them, whatever the grant says. Pure.
 */
export function prepareCall(good: GoodGrant, offered: OfferedTools, validator: Validator): PreparedCall | Refusal {
  const entry = offered.tools.get(good.grant.tool);
  if (entry === undefined) return notOffered(good.grant.tool, offered);
  const decoded = inputOf(entry, good.value, validator);
  if (decoded.kind === "refused") return decoded;
  const { input } = decoded;
  const block = blockReason(entry.name, input);
  if (block !== undefined) return refusal(ErrorReason.POLICY_BLOCKED, block.message, { rules: block.rule });
  return { kind: "prepared", entry, input, timeoutMs: shortest(good.grant.timeoutMs, entry.timeoutMs(input)) };
}

function notOffered(tool: string, offered: OfferedTools): Refusal {
  const missing = offered.unavailable.get(tool);
  if (missing !== undefined) {
    const { program, why } = missing;
    return refusal(ErrorReason.NOT_AVAILABLE, `${tool} is not available on this device: ${why}`, { tool, program });
  }
  const capability = offered.known.get(tool)?.capability ?? "";
  return refusal(ErrorReason.MANIFEST_REFUSED, `the device's manifest does not offer ${tool}`, { capability });
}

function inputOf(
  entry: ToolEntry,
  value: JsonObject,
  validator: Validator,
): { kind: "decoded"; input: Message } | Refusal {
  try {
    return { kind: "decoded", input: decodeInput(validator, entry.input, value) };
  } catch (error: unknown) {
    return refusalOf(error);
  }
}

/** What a validation fault says, as a value. Anything else is thrown again. */
function refusalOf(error: unknown): Refusal {
  const detail = faultDetail(error);
  if (detail === undefined) throw error;
  const violations = detail.violations.map(({ field, message }) => ({ field, message }));
  return refusal(detail.reason, (error as ConnectError).rawMessage, { ...detail.metadata }, violations);
}

/** A grant of 0 ms sets no limit of its own. */
function shortest(grantMs: number, toolMs: number): number {
  return grantMs === 0 ? toolMs : Math.min(grantMs, toolMs);
}
