import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { type Principal, requireRole } from "./principal.ts";
import { roleFromName, roleName, roleNames } from "./roles.ts";

const agent: Principal = { id: "a", kind: "agent", roles: [Role.AGENT], name: "a" };

test("lets in a principal that has one of the roles", () => {
  expect(requireRole(agent, [Role.OPERATOR, Role.AGENT])).toBe(agent);
});

test("refuses a principal without the role and names the roles that would do", () => {
  const error = refusal(agent, [Role.OPERATOR, Role.AUDITOR]);
  expect(error).toMatchObject({ code: Code.PermissionDenied });
  expect(faultDetail(error)).toMatchObject({
    reason: ErrorReason.ROLE_REQUIRED,
    metadata: { roles: "operator, auditor" },
  });
});

test("refuses everyone where no role may", () => {
  expect(faultDetail(refusal(agent, []))).toMatchObject({ reason: ErrorReason.ROLE_REQUIRED, metadata: { roles: "" } });
});

test("refuses a caller without a principal as unauthenticated, whatever the roles", () => {
  expect(refusal(undefined, [])).toMatchObject({ code: Code.Unauthenticated });
});

test("a role's name leads back to the role", () => {
  expect(roleNames.map((name) => roleName(roleFromName(name) ?? Role.UNSPECIFIED))).toEqual([...roleNames]);
  expect(roleFromName("constructor")).toBeUndefined();
  expect(roleFromName("device")).toBeUndefined();
  expect(roleName(Role.DEVICE)).toBe("device");
  expect(roleName(Role.UNSPECIFIED)).toBeUndefined();
});

function refusal(principal: Principal | undefined, roles: Role[]): unknown {
  try {
    return requireRole(principal, roles);
  } catch (error) {
    return error;
  }
}
