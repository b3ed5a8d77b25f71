import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { builtInTools } from "../toolschema/built-in-tools.ts";
import { canonicalArguments as canonical } from "./arguments.ts";

const tools = builtInTools();
const canonicalArguments = (tool: string, params: JsonObject) => canonical(tools.get(tool) ?? expect.fail(), params);
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

function violation(run: () => unknown) {
  try {
    run();
  } catch (error: unknown) {
    const detail = faultDetail(error);
    return { reason: detail?.reason, field: detail?.metadata.field, limit: detail?.metadata.limit };
  }
  return undefined;
}

describe("canonicalArguments", () => {
  test("gives one form and one digest to what means the same", () => {
    const one = canonicalArguments("exec", { argv: ["ls"], timeout_ms: 5, env: { b: "2", a: "1" } });
    const two = canonicalArguments("exec", { env: { a: "1", b: "2" }, timeoutMs: 5, argv: ["ls"], cwd: "" });
    expect(text(one.bytes)).toBe('{"argv":["ls"],"env":{"a":"1","b":"2"},"timeoutMs":5}');
    expect(two.digest).toBe(one.digest);
    expect(one.timeoutMs).toBe(5);
  });

  test("names a blank program for a container", () => {
    const params = { container: "web", argv: [" "] };
    expect(violation(() => canonicalArguments("docker.exec", params))?.field).toBe("params.argv[0]");
    const relative = { container: "web", argv: ["./run"] };
    expect(violation(() => canonicalArguments("docker.exec", relative))).toBeUndefined();
  });

  test.each<[string, JsonObject, string]>([
    ["an unknown field", { argv: ["ls"], shell: true }, "params.shell"],
    ["a wrong type", { argv: "ls" }, "params.argv"],
    ["a wrong element", { argv: ["ls", 1] }, "params.argv[1]"],
    ["a missing field", {}, "params.argv"],
    ["a value over its limit", { argv: ["ls"], timeoutMs: 3_600_001 }, "params.timeoutMs"],
    ["a NUL", { argv: ["a\0b"] }, "params.argv[0]"],
    ["a bad map key", { argv: ["ls"], env: { "A=B": "1" } }, 'params.env["A=B"]'],
    ["an empty program", { argv: [""] }, "params.argv[0]"],
    ["a blank program", { argv: [" \t"] }, "params.argv[0]"],
    ["a relative program", { argv: ["./df"] }, "params.argv[0]"],
    ["a variable that loads code", { argv: ["ls"], env: { LD_PRELOAD: "x" } }, 'params.env["LD_PRELOAD"]'],
    ["a variable that chooses programs", { argv: ["ls"], env: { path: "/tmp" } }, 'params.env["path"]'],
    ["a number that is no integer", { argv: ["ls"], timeoutMs: 1.5 }, "params.timeoutMs"],
  ])("names %s", (_, params, field) => {
    expect(violation(() => canonicalArguments("exec", params))).toMatchObject({
      reason: ErrorReason.INVALID_INPUT,
      field,
    });
  });

  test("names the whole where a rule is about several fields", () => {
    const both = { path: "/tmp/a", text: "a", data: "YQ==" };
    expect(violation(() => canonicalArguments("fs.write", both))?.field).toBe("params");
  });

  test("refuses what is deeper than the limit without following it down", () => {
    let deep: JsonObject = {};
    for (let level = 0; level < 10_000; level++) deep = { a: deep };
    expect(violation(() => canonicalArguments("exec", deep))).toMatchObject({
      reason: ErrorReason.INPUT_TOO_LARGE,
      limit: "depth",
    });
  });

  test("refuses more keys than the limit", () => {
    const env = Object.fromEntries(Array.from({ length: 1001 }, (_, key) => [`k${key}`, "v"]));
    expect(violation(() => canonicalArguments("exec", { argv: ["ls"], env }))?.limit).toBe("keys");
  });
});
