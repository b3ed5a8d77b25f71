import { expect, test } from "vitest";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { Source } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { roleName } from "../../../lib/auth/roles.ts";
import { clientOf, observedSource } from "./ingress.ts";

function principal(...roles: Role[]): Principal {
  return { id: "0123456789ab", kind: roleName(roles[0] ?? Role.UNSPECIFIED) ?? "auditor", roles, name: "one" };
}

test.each([
  ["an agent", [Role.AGENT], Source.LLM],
  ["an agent that may look at everything", [Role.AGENT, Role.AUDITOR], Source.LLM],
  ["an agent with an operator's rights, whichever comes first", [Role.OPERATOR, Role.AGENT], Source.LLM],
  ["an operator", [Role.OPERATOR], Source.CLI],
  ["a person's token that looks at everything and calls as an agent", [Role.AUDITOR, Role.AGENT], Source.CLI],
])("observes %s", (_, roles, source) => {
  expect(observedSource(Source.CLI, principal(...roles))).toBe(source);
});

test("takes what a caller says of itself as words", () => {
  expect(clientOf({ client: "", source: Source.UNSPECIFIED })).toBe("");
  expect(clientOf({ client: "", source: Source.LLM })).toBe("llm");
  expect(clientOf({ client: "my tool", source: Source.LLM })).toBe("my tool");
});
