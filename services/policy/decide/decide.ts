import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { celContext } from "../rules/cel-values.ts";
import { COST_LIMIT } from "../rules/cost-limit.ts";
import { type Effect, isStricter } from "../rules/effect.ts";
import type { Facts } from "../rules/facts.ts";
import type { Policy } from "../rules/policy.ts";

/** What policy thinks of one call. */
export interface Judgment {
  effect: Effect;
  /** Why not, for a block or a denial; UNSPECIFIED otherwise. */
  reason: ErrorReason;
  /** Everything that matched, in the order it was looked at. */
  ruleIds: string[];
  /** The message of the first rule with the effect; safe to show. */
  message: string;
  /**
   * The longest that it may run without a person's approval, in milliseconds: what the most generous of the rules that allow
   * it says. 0: one of them sets no limit. Counts for what is allowed only.
   */
  maxRunMs: number;
  /** Everything that was looked at. */
  trace: TraceStep[];
}

/** What one rule said. */
export interface TraceStep {
  ruleId: string;
  effect: Effect;
  matched: boolean;
  /** What went wrong while it was evaluated; then it denies. Empty where nothing did. */
  error: string;
}

/** What the blocklist says of a call: the rule that matches. */
export interface BlockReason {
  /** Its id, such as "blocklist/delete-system". */
  rule: string;
  message: string;
}

/** The id under which a tool's or device's own demand for a human appears. */
const REQUIRES_APPROVAL = "mode/requires-approval";

const OVER_LIMIT = `over the cost limit of ${COST_LIMIT}`;

const UNMATCHED = "No rule allows this.";

/**
 * Decides about one call. The strictest rule that matches wins: block, deny, hold, allow; a rule that fails while it is
 * evaluated, or would cost more than its limit, denies; where nothing matches the call is denied.
 * No rule can lift the blocklist, nor a demand for a human that comes with the tool. Pure.
 */
export function decide(policy: Policy, facts: Facts, blocked: BlockReason | undefined): Judgment {
  const context = celContext(facts);
  const trace: TraceStep[] = [];
  const runs: number[] = [];
  let strictest: { effect: Effect; message: string } | undefined;
  const consider = (ruleId: string, effect: Effect, message: string, error = ""): void => {
    trace.push({ ruleId, effect, matched: true, error });
    if (!strictest || isStricter(effect, strictest.effect)) strictest = { effect, message };
  };

  if (blocked) consider(blocked.rule, "block", blocked.message);
  if (facts.tool.requires_approval) {
    consider(REQUIRES_APPROVAL, "hold", "Every call of this tool on this device waits for a person.");
  }
  for (const rule of policy.rulesFor(facts.tool.name)) {
    const verdict = rule.evaluate(context);
    if (verdict.kind === "match") {
      consider(rule.id, rule.effect, rule.message);
      if (rule.effect === "allow") runs.push(rule.maxRunMs ?? Number.POSITIVE_INFINITY);
    }
    if (verdict.kind === "error") consider(rule.id, "deny", `The rule "${rule.id}" failed.`, verdict.message);
    if (verdict.kind === "over_limit") consider(rule.id, "deny", tooCostly(rule.id), OVER_LIMIT);
    if (verdict.kind === "no_match") trace.push({ ruleId: rule.id, effect: rule.effect, matched: false, error: "" });
  }

  const { effect, message } = strictest ?? { effect: "deny", message: UNMATCHED };
  const ruleIds = trace.filter((step) => step.matched).map((step) => step.ruleId);
  return { effect, reason: reasonOf(effect), ruleIds, message, maxRunMs: longest(runs), trace };
}

/** 0 where one of them is without an end, or there is none. */
function longest(runs: readonly number[]): number {
  const most = Math.max(0, ...runs);
  return Number.isFinite(most) ? most : 0;
}

function tooCostly(ruleId: string): string {
  return `The arguments are too large for the rule "${ruleId}": it would cost more than ${COST_LIMIT} to evaluate.`;
}

function reasonOf(effect: Effect): ErrorReason {
  if (effect === "block") return ErrorReason.POLICY_BLOCKED;
  return effect === "deny" ? ErrorReason.POLICY_DENIED : ErrorReason.UNSPECIFIED;
}
