import { expect, test } from "vitest";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { roleName } from "../../../lib/auth/roles.ts";
import { observedIngress } from "./ingress.ts";

function principal(...roles: Role[]): Principal {
  return { id: "0123456789ab", kind: roleName(roles[0] ?? Role.UNSPECIFIED) ?? "auditor", roles, name: "one" };
}

test.each([
  ["an agent", [Role.AGENT], Ingress.LLM],
  ["an agent that may look at everything", [Role.AGENT, Role.AUDITOR], Ingress.LLM],
  ["an agent with an operator's rights, whichever comes first", [Role.OPERATOR, Role.AGENT], Ingress.LLM],
  ["a workflow", [Role.WORKFLOW], Ingress.WORKFLOW],
  ["a workflow with an operator's rights", [Role.OPERATOR, Role.WORKFLOW], Ingress.WORKFLOW],
  [
    "an agent that is a workflow, too, and has an operator's rights",
    [Role.OPERATOR, Role.WORKFLOW, Role.AGENT],
    Ingress.LLM,
  ],
  ["an operator", [Role.OPERATOR], Ingress.CLI],
  ["a person's token that looks at everything and calls as an agent", [Role.AUDITOR, Role.AGENT], Ingress.CLI],
])("observes %s", (_, roles, ingress) => {
  expect(observedIngress(Ingress.CLI, principal(...roles))).toBe(ingress);
});
