import { describe, expect, it, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { parseSelector } from "./selector.ts";

describe("a selector", () => {
  const labels = { role: "web", zone: "us", "app.kubernetes.io/name": "shop" };
  it.each([
    ["role=web", true],
    ["role=db", false],
    ["role!=db", true],
    ["role!=web", false],
    ["gpu!=a100", true],
    ["role", true],
    ["gpu", false],
    ["role=web,zone=us", true],
    ["role=web,zone!=us", false],
    [" role = web , zone ", true],
    ["app.kubernetes.io/name=shop", true],
    ["toString", false],
  ])("reads %s", (text, matches) => {
    expect(parseSelector(text)(labels)).toBe(matches);
  });
});

test.each(["", "role=web,", "=web", "role=", "role==web", "role=a=b", "!gpu", "ro le=web", "-role=web", "role!web"])(
  "a selector such as %j is refused, naming the field",
  (text) => {
    let thrown: unknown;
    try {
      parseSelector(text);
    } catch (error: unknown) {
      thrown = error;
    }
    expect(faultDetail(thrown)).toMatchObject({
      reason: ErrorReason.INVALID_INPUT,
      metadata: { field: "selector" },
      violations: [{ field: "selector" }],
    });
  },
);
