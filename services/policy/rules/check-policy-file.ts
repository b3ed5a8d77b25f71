import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import type { ToolLookup } from "./example.ts";
import { loadPolicy } from "./load-policy.ts";
import type { PolicyProblem } from "./problem.ts";

/** What a check found. */
export type PolicyCheck =
  | { ok: true; version: string; rules: number; examples: number }
  | { ok: false; version: string; problems: PolicyProblem[] };

/** Checks a policy file as it would be checked when loaded, without loading it. Pure. */
export function checkPolicyFile(text: string, lookup: ToolLookup = toolByName): PolicyCheck {
  const result = loadPolicy(text, lookup);
  if (!result.ok) return result;
  return {
    ok: true,
    version: result.policy.version,
    rules: result.policy.rules.length,
    examples: result.policy.examples,
  };
}
