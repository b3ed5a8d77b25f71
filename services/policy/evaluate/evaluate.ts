import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SandboxLevel, SandboxLevelSchema } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { DecisionRequest, DeviceFacts, ToolFacts } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { CallAnalysis } from "../../../lib/command/call.ts";
import {
  commandOn,
  isFanOut,
  type ToolLookup,
  type ValidatedRequest,
  validateRequest,
} from "../facts/decision-request.ts";
import { type Facts, factsOf, factsOn, valueName } from "../facts/facts.ts";
import { COST_LIMIT } from "../rules/cost-limit.ts";
import type { Obligations } from "../rules/obligations.ts";
import { strictest } from "../rules/obligations.ts";
import { type Effect, isStricter, type Policy } from "../rules/policy.ts";
import { combineDevices } from "./fan-out.ts";

/** What the rules say of one call. */
export interface Evaluation {
  effect: Effect;
  /** Why not, for a block or a denial; UNSPECIFIED otherwise. */
  reason: ErrorReason;
  /** Everything that matched, in the order of the policy file. */
  ruleIds: string[];
  /** The message of the first rule with the effect; safe to show. */
  message: string;
  /** The strictest of the rules that allow it. Empty for what is not allowed, and where a person approves. */
  obligations: Obligations;
  /** Every rule that was evaluated. */
  trace: TraceStep[];
}

/** What one rule said. */
export interface TraceStep {
  ruleId: string;
  effect: Effect;
  matched: boolean;
  /** Why its evaluation failed; then it denies. Empty where it did not. */
  error: string;
}

/** A validated request and what the active policy says of it. Nothing is written or granted yet. */
export interface Evaluated {
  call: ValidatedRequest;
  evaluation: Evaluation;
  policy: Policy;
}

/** Evaluates a request against the active policy. Throws INVALID_INPUT. */
export type Evaluator = (request: DecisionRequest) => Evaluated;

export interface EvaluatorOptions {
  policy: () => Policy;
  lookup: ToolLookup;
}

/** Everything about a decision that needs no database. A fan-out is evaluated for each of its devices. */
export function createEvaluator({ policy, lookup }: EvaluatorOptions): Evaluator {
  return (request) => {
    const call = validateRequest(request, lookup);
    const { tool, args, command } = call;
    const active = policy();
    const facts = factsOf(request, args, command);
    if (!isFanOut(request)) {
      return { call, evaluation: evaluate(active, { tool, device: call.device, command }, facts), policy: active };
    }
    const commandFor = commandByFolders(call, lookup);
    const evaluations = request.devices.map((device) => {
      const its = { tool, device, command: commandFor(device) };
      return { name: device.name, evaluation: evaluate(active, its, factsOn(facts, device, its.command)) };
    });
    return { call, evaluation: combineDevices(evaluations), policy: active };
  };
}

/** The analysis for each of many devices, made once for those of the same platform with the same roots. */
function commandByFolders(call: ValidatedRequest, lookup: ToolLookup): (device: DeviceFacts) => CallAnalysis {
  const keyOf = ({ platform, roots }: DeviceFacts): string => [platform, ...roots].join("\0");
  const known = new Map<string, CallAnalysis>([[keyOf(call.device), call.command]]);
  return (device) => {
    const key = keyOf(device);
    const command = known.get(key) ?? commandOn(device, call, lookup);
    known.set(key, command);
    return command;
  };
}

/** The id under which a tool's or device's own requirement of an approval appears. */
const REQUIRES_APPROVAL = "mode/requires-approval";

/** The id under which it appears that a device cannot keep the sandbox that rules name. */
const SANDBOX = "mode/sandbox";

const OVER_LIMIT = `over the cost limit of ${COST_LIMIT}`;

const UNMATCHED = "No rule allows this.";

/** The verdicts of an analysis that no rule and no person lifts. */
const NEVER: ReadonlySet<string> = new Set<CallAnalysis["verdict"]>(["block", "reject"]);

/** What is known of a call besides the facts that rules see. */
export interface EvaluatedCall {
  tool: Pick<ToolFacts, "name" | "requiresApproval">;
  device: Pick<DeviceFacts, "sandbox">;
  command: Pick<CallAnalysis, "verdict" | "reasons">;
}

/**
 * Evaluates the rules for one call. The strictest rule that matches wins: block, deny, hold, allow; a rule that fails, or
 * would cost more than its limit, denies; where nothing matches the call is denied. No rule can lift the blocklist, nor a
 * tool's own requirement of an approval. A call is held, too, that rules allow in a sandbox which its device cannot keep. Pure.
 */
export function evaluate(policy: Policy, { tool, device, command }: EvaluatedCall, facts: Facts): Evaluation {
  const trace: TraceStep[] = [];
  const obligations: Obligations[] = [];
  let winner: { effect: Effect; message: string } | undefined;
  const consider = (ruleId: string, effect: Effect, message: string, error = ""): void => {
    trace.push({ ruleId, effect, matched: true, error });
    if (!winner || isStricter(effect, winner.effect)) winner = { effect, message };
  };

  const [first] = command.reasons;
  if (first && NEVER.has(command.verdict)) consider(first.rule, "block", first.message);
  if (tool.requiresApproval) {
    consider(REQUIRES_APPROVAL, "hold", "Every call of this tool on this device waits for a person.");
  }
  for (const rule of policy.rulesFor(tool.name)) {
    const verdict = rule.evaluate(facts);
    if (verdict.kind === "match") {
      consider(rule.id, rule.effect, rule.message);
      obligations.push(rule.obligations);
    }
    if (verdict.kind === "error") consider(rule.id, "deny", `The rule "${rule.id}" failed.`, verdict.message);
    if (verdict.kind === "over_limit") consider(rule.id, "deny", tooCostly(rule.id), OVER_LIMIT);
    if (verdict.kind === "no_match") trace.push({ ruleId: rule.id, effect: rule.effect, matched: false, error: "" });
  }

  const demanded = strictest(obligations);
  if (winner?.effect === "allow" && device.sandbox < (demanded.sandbox ?? 0)) {
    consider(SANDBOX, "hold", sandboxMissing(demanded.sandbox));
  }
  const { effect, message } = winner ?? { effect: "deny", message: UNMATCHED };
  const ruleIds = trace.filter((step) => step.matched).map((step) => step.ruleId);
  return { effect, reason: reasonOf(effect), ruleIds, message, obligations: demanded, trace };
}

function sandboxMissing(level: SandboxLevel = SandboxLevel.UNSPECIFIED): string {
  const name = valueName(SandboxLevelSchema, level);
  return `This runs without a person only in a sandbox (${name}), which the device does not have; a person has to look at it.`;
}

function tooCostly(ruleId: string): string {
  return `The arguments are too large for the rule "${ruleId}": it would cost more than ${COST_LIMIT} to evaluate.`;
}

function reasonOf(effect: Effect): ErrorReason {
  if (effect === "block") return ErrorReason.POLICY_BLOCKED;
  return effect === "deny" ? ErrorReason.POLICY_DENIED : ErrorReason.UNSPECIFIED;
}
