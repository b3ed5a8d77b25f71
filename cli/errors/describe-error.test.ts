import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ConfigError } from "../../lib/config/config.ts";
import { fault } from "../../lib/fault/fault.ts";
import { describeError, errorJson, errorText } from "./describe-error.ts";
import { UsageError } from "./usage-error.ts";

const text = (error: unknown) => errorText(describeError(error));

describe("an error", () => {
  it("of a service is its message, its fields and what helps", () => {
    const error = fault(
      ErrorReason.UNKNOWN_TOOL,
      { tool: "x", available: "exec, fs.read" },
      { message: 'no tool "x"', violations: [{ field: "tool", message: "does not exist" }] },
    );
    expect(text(error)).toBe('reeve: no tool "x"\n  tool: does not exist\n  available tools: exec, fs.read\n');
    expect(errorJson(describeError(error))).toEqual({
      error: {
        reason: "unknown_tool",
        message: 'no tool "x"',
        metadata: { tool: "x", available: "exec, fs.read" },
        violations: [{ field: "tool", message: "does not exist" }],
        hints: ["available tools: exec, fs.read"],
        exitCode: 2,
      },
    });
  });

  it("does not say twice what its message says", () => {
    const message = 'no tool "x"; there is: exec';
    expect(text(fault(ErrorReason.UNKNOWN_TOOL, { tool: "x", available: "exec" }, { message }))).toBe(
      `reeve: ${message}\n`,
    );
  });

  it("of what was typed has its hints", () => {
    expect(text(new UsageError("no", ["try yes"]))).toBe("reeve: no\n  try yes\n");
  });

  it("of the configuration lists every problem", () => {
    const report = describeError(new ConfigError(["REEVE_A is not set", "REEVE_B must be a whole number"]));
    expect(report.exitCode).toBe(2);
    expect(errorText(report)).toContain("REEVE_B must be");
  });

  it.each([
    [new ConnectError("connect ECONNREFUSED 127.0.0.1:1", Code.Unavailable), 5, "cannot be reached"],
    [new ConnectError("the stream was closed", Code.Canceled), 5, "cannot be reached"],
    [new ConnectError("the operation timed out", Code.DeadlineExceeded), 6, "timed out"],
    [fault(ErrorReason.POLICY_DENIED), 3, "policy denied"],
    [fault(ErrorReason.INTERNAL, { request_id: "r-1" }), 70, "request id r-1"],
    [new Error("something else"), 70, "something else"],
    ["a string", 70, "a string"],
  ])("%s ends with %d", (error, code, words) => {
    const report = describeError(error);
    expect(report.exitCode).toBe(code);
    expect(errorText(report)).toContain(words);
  });

  it("from a device cannot act on the terminal", () => {
    const message = "bad\x1b[2J\nreeve: all is well";
    expect(text(fault(ErrorReason.TOOL_FAILED, {}, { message }))).toBe("reeve: bad\\x1b[2J\n  reeve: all is well\n");
  });
});
