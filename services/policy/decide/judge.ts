import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { DecisionRequest, DeviceFacts } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { readCanonicalArguments } from "../../../lib/tool/canonical-arguments.ts";
import type { JsonSchema } from "../../../lib/tool/json-schema.ts";
import type { ToolLookup } from "../rules/example.ts";
import type { Policy } from "../rules/policy.ts";
import { type BlockReason, decide, type Judgment } from "./decide.ts";
import { decideWhole } from "./decide-whole.ts";
import { inputSchemaOf } from "./input-schema.ts";
import { asksAboutWhole } from "./question.ts";
import { factsOf, type WholeRequest, wholeRequest } from "./request-facts.ts";

/** A request that was read and judged; nothing is written or granted yet. */
export interface Judged {
  whole: WholeRequest;
  args: JsonObject;
  argsDigest: string;
  judgment: Judgment;
  policy: Policy;
  /** The schema of the tool's input, where it is known: it says which arguments are secrets. */
  inputSchema: JsonSchema | undefined;
}

/** Reads and judges a request by the policy in force. Throws INVALID_INPUT. */
export type Judge = (request: DecisionRequest) => Judged;

/** What judging needs. */
export interface JudgeOptions {
  policy: () => Policy;
  /** What the blocklist says of a tool's input. */
  blockReason: (tool: string, input: JsonObject) => BlockReason | undefined;
  lookup: ToolLookup;
}

/** A judge: everything about a decision that needs no database. A fan-out is judged for each of its devices. */
export function createJudge({ policy, blockReason, lookup }: JudgeOptions): Judge {
  return (request) => {
    const whole = wholeRequest(request);
    const args = argumentsOf(request);
    const inForce = policy();
    const blocked = blockReason(whole.tool.name, args);
    const judgeOn = (device: DeviceFacts) => decide(inForce, factsOf({ ...whole, device }, args), blocked);
    const judgment = asksAboutWhole(request)
      ? decideWhole(request.devices.map((device) => ({ name: device.name, judgment: judgeOn(device) })))
      : judgeOn(whole.device);
    return {
      whole,
      args,
      argsDigest: sha256Hex(request.arguments),
      judgment,
      policy: inForce,
      inputSchema: inputSchemaOf(whole.tool, lookup),
    };
  };
}

function argumentsOf(request: DecisionRequest): JsonObject {
  const read = readCanonicalArguments(request.arguments);
  if (read.ok) return read.value;
  const { field, rule, message } = read;
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field, rule },
    { message: `${field}: ${message}`, violations: [{ field, message }] },
  );
}
