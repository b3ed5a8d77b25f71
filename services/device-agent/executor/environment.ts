import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { reservedVariables } from "../../../lib/programs/run-input.ts";

/** The variables of the agent's own environment that programs get. Everything else stays with the agent. */
const INHERITED = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER"] as const;

const DEFAULTS: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};

/** What every program starts with, taken from the agent's environment by name. */
export function baseEnvironment(agent: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const base: Record<string, string> = {};
  for (const name of INHERITED) {
    const value = agent[name] || DEFAULTS[name];
    if (value !== undefined) base[name] = value;
  }
  return base;
}

/** Refuses a caller's variable that would change which code runs. Fault: INVALID_INPUT{field,rule}. */
export function checkEnvironment(env: Readonly<Record<string, string>>): void {
  const [first] = reservedVariables(Object.keys(env));
  if (first === undefined) return;
  const { name, message } = first;
  const field = `env["${name}"]`;
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field, rule: "env.reserved" },
    { message, violations: [{ field, message }] },
  );
}
