import { expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { tokenStatuses } from "./token-status.ts";

const entry = { name: "n", hash: "", created: "2026-01-01T00:00:00Z" };
const listTokens = () => [
  { ...entry, id: "aaaaaaaaaaaa", roles: ["agent"] },
  { ...entry, id: "bbbbbbbbbbbb", roles: ["operator", "auditor"], expires: "2026-11-01T12:00:00Z" },
];
const statusAt = (time: string) => tokenStatuses({ listTokens }, () => Date.parse(time));

test.each([
  ["a token of the file", "aaaaaaaaaaaa", { valid: true, roles: [Role.AGENT] }],
  ["a token that has not expired yet", "bbbbbbbbbbbb", { valid: true, roles: [Role.OPERATOR, Role.AUDITOR] }],
  ["a token that is gone", "cccccccccccc", { valid: false, why: "revoked" }],
  ["a principal known by other means", "oidc/jane", { valid: true, roles: undefined }],
  ["a device", "dev-0123456789abcdef", { valid: true, roles: undefined }],
])("reports  %s", (_, id, status) => {
  expect(statusAt("2026-11-01T11:59:59Z")(id)).toEqual(status);
});

test("reports  a token that has expired", () => {
  expect(statusAt("2026-11-01T12:00:00Z")("bbbbbbbbbbbb")).toEqual({ valid: false, why: "expired" });
});
