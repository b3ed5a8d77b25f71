import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { analyzeCall, type CallAnalysis } from "../../../lib/command/call.ts";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { factsOf } from "../facts/facts.ts";
import { completeExample } from "../rules/example.ts";
import { loadPolicy } from "../rules/load-policy.ts";
import type { Policy } from "../rules/policy.ts";
import { type Evaluation, evaluate } from "./evaluate.ts";

function policyOf(...rules: string[]): Policy {
  const result = loadPolicy(`version: 1\nrules:\n${rules.map((rule) => `  - { ${rule} }`).join("\n")}\n`, toolByName);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.policy;
}

interface Changes {
  requiresApproval?: boolean;
  args?: JsonObject;
  command?: CallAnalysis;
  device?: { sandbox?: SandboxLevel };
}

/** What a policy says of fs.read. */
function evaluation(
  policy: Policy,
  { requiresApproval = false, args, command = { verdict: "none", reasons: [] }, device = {} }: Changes = {},
): Evaluation {
  const result = completeExample({ tool: "fs.read", args: { path: "/a" } }, toolByName);
  if (!result.ok) throw new Error(result.message);
  const facts = factsOf(result.request, args ?? result.args, command);
  const { sandbox = SandboxLevel.NONE } = device;
  return evaluate(policy, { tool: { name: "fs.read", requiresApproval }, device: { sandbox }, command }, facts);
}

const RULES = {
  allow: "id: r-allow, effect: allow, message: yes",
  hold: "id: r-hold, effect: hold, message: wait",
  deny: "id: r-deny, effect: deny, message: no",
  block: "id: r-block, effect: block, message: never",
};

describe("evaluate", () => {
  it.each([
    [["allow"], "allow", "yes"],
    [["allow", "hold"], "hold", "wait"],
    [["hold", "allow"], "hold", "wait"],
    [["allow", "hold", "deny"], "deny", "no"],
    [["block", "deny", "hold", "allow"], "block", "never"],
    [["allow", "block"], "block", "never"],
  ] as const)("lets the strictest of %j win", (names, effect, message) => {
    const evaluated = evaluation(policyOf(...names.map((name) => RULES[name])));
    expect(evaluated).toMatchObject({ effect, message, ruleIds: names.map((name) => `r-${name}`) });
  });

  it("denies what nothing matches", () => {
    const evaluated = evaluation(policyOf(`${RULES.allow}, when: "false"`));
    expect(evaluated).toMatchObject({
      effect: "deny",
      reason: ErrorReason.POLICY_DENIED,
      ruleIds: [],
      trace: [{ ruleId: "r-allow", matched: false }],
    });
  });

  it("denies where a rule would cost more than its limit, and names the rule", () => {
    const list = Array.from({ length: 2000 }, () => "a");
    const evaluated = evaluation(
      policyOf(
        RULES.allow,
        "id: r-walks, effect: hold, message: m, when: 'args.l.exists(x, args.l.exists(y, x != y))'",
      ),
      { args: { l: list } },
    );
    expect(evaluated).toMatchObject({
      effect: "deny",
      reason: ErrorReason.POLICY_DENIED,
      ruleIds: ["r-allow", "r-walks"],
      message: 'The arguments are too large for the rule "r-walks": it would cost more than 250000 to evaluate.',
    });
    expect(evaluated.trace[1]).toMatchObject({
      ruleId: "r-walks",
      effect: "deny",
      error: "over the cost limit of 250000",
    });
  });

  it("denies where a rule fails, and the trace says why", () => {
    const evaluated = evaluation(policyOf(RULES.allow, "id: broken, effect: allow, message: m, when: args.x == 1"));
    expect(evaluated).toMatchObject({
      effect: "deny",
      reason: ErrorReason.POLICY_DENIED,
      ruleIds: ["r-allow", "broken"],
    });
    expect(evaluated.trace[1]).toEqual({ ruleId: "broken", effect: "deny", matched: true, error: "No such key: x" });
  });

  it("holds what is under approval, and no rule lifts that", () => {
    const evaluated = evaluation(policyOf(RULES.allow), { requiresApproval: true });
    expect(evaluated).toMatchObject({ effect: "hold", ruleIds: ["mode/requires-approval", "r-allow"] });
  });

  it("holds what rules allow in a sandbox that the device cannot keep", () => {
    const policy = policyOf(
      `${RULES.allow}, obligations: { sandbox: workspace }`,
      "id: r-strict, effect: allow, message: yes, obligations: { sandbox: read_only }",
    );
    const at = (sandbox: SandboxLevel) => evaluation(policy, { device: { sandbox } });
    for (const sandbox of [SandboxLevel.UNSPECIFIED, SandboxLevel.NONE, SandboxLevel.WORKSPACE]) {
      expect(at(sandbox)).toMatchObject({ effect: "hold", ruleIds: ["r-allow", "r-strict", "mode/sandbox"] });
    }
    expect(at(SandboxLevel.READ_ONLY)).toMatchObject({
      effect: "allow",
      ruleIds: ["r-allow", "r-strict"],
      obligations: { sandbox: SandboxLevel.READ_ONLY },
    });
    const denied = evaluation(policyOf(RULES.deny, `${RULES.allow}, obligations: { sandbox: read_only }`));
    expect(denied.effect).toBe("deny");
  });

  it("still denies what is under approval and no rule allows", () => {
    const evaluated = evaluation(policyOf(RULES.deny), { requiresApproval: true });
    expect(evaluated.effect).toBe("deny");
  });

  it.each(["block", "reject"] as const)("blocks what the analysis says is to %s, and no rule lifts that", (verdict) => {
    const evaluated = evaluation(policyOf(RULES.allow), {
      command: { verdict, reasons: [{ rule: "blocklist/wipe", message: "This wipes a disk." }] },
    });
    expect(evaluated).toMatchObject({
      effect: "block",
      reason: ErrorReason.POLICY_BLOCKED,
      message: "This wipes a disk.",
      ruleIds: ["blocklist/wipe", "r-allow"],
    });
  });

  it("lets rules see what the analysis says of the commands", () => {
    const policy = policyOf(
      `${RULES.allow}, when: 'command.verdict == "allow" && command.subject == "files" && command.sandbox == "required"'`,
      `${RULES.hold}, when: '"command/not-a-plan" in command.rules'`,
    );
    const schema = toolByName("shell.eval")?.inputSchema ?? {};
    const of = (command: string) => analyzeCall(schema, { command }, { roots: ["/srv"] });
    expect(evaluation(policy, { command: of("git status") }).effect).toBe("allow");
    expect(evaluation(policy, { command: of("for f in a; do cat $f; done") }).effect).toBe("hold");
    expect(evaluation(policy, { command: of("ls") }).effect).toBe("deny");
    expect(evaluation(policy, { command: of("git status; docker ps") }).effect).toBe("deny");
    expect(evaluation(policy).effect).toBe("deny");
  });

  it("looks only at rules of the tool", () => {
    const evaluated = evaluation(policyOf(`${RULES.deny}, tools: [exec]`, `${RULES.allow}, tools: ["fs.*"]`));
    expect(evaluated.trace.map((step) => step.ruleId)).toEqual(["r-allow"]);
  });
});
