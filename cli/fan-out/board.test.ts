import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  FanOutCallSchema,
  FanOutPlanSchema,
  FanOutSummarySchema,
} from "../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { type TestCallFields, testCall } from "../../testkit/test-call.ts";
import { plain } from "../print/style.ts";
import { createBoard, lineText } from "./board.ts";
import { exitCodeOfFanOut } from "./exit-code.ts";

const plan = create(FanOutPlanSchema, {
  waves: [
    { number: 1, devices: ["web-1"] },
    { number: 2, devices: ["web-2", "web-3"] },
  ],
});
const event = (device: string, call: TestCallFields) =>
  create(FanOutCallSchema, { device, event: { event: { case: "call", value: testCall(call) } } });

describe("the board of a fan-out", () => {
  it("has a line for each device, which waits at first", () => {
    expect(
      createBoard(plan)
        .lines()
        .map(({ device, status }) => `${device} ${status}`),
    ).toEqual(["web-1 waiting", "web-2 waiting", "web-3 waiting"]);
  });

  it.each([
    [{ state: CallState.HELD, approval: { id: "apr-1" } }, "held", "apr-1"],
    [{ state: CallState.QUEUED }, "queued", "its device is offline"],
    [{ state: CallState.DISPATCHED }, "running", ""],
    [{ state: CallState.SUCCEEDED, output: { exitCode: 0 } }, "ok", ""],
    [{ state: CallState.SUCCEEDED, output: { exitCode: 2 } }, "failed", "exit code 2"],
    [
      { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE }, errorMessage: "not linked" },
      "failed",
      "device_offline: not linked",
    ],
    [{ state: CallState.UNKNOWN }, "failed", "unknown"],
  ] as const)("shows %j as %s", (call, status, note) => {
    expect(createBoard(plan).take(event("web-2", call))).toMatchObject({ device: "web-2", wave: 2, status, note });
  });

  it("reports a change once, however often it comes", () => {
    const board = createBoard(plan);
    const running = event("web-1", { state: CallState.DISPATCHED });
    expect(board.take(running)).toBeDefined();
    expect(board.take(running)).toBeUndefined();
    expect(board.take(event("web-9", { state: CallState.DISPATCHED }))).toBeUndefined();
  });

  it("lets nothing that a device says act on the terminal", () => {
    const failed = event("web-1", { state: CallState.FAILED, errorMessage: "\u001b[2Jgone\nweb-2 ok" });
    const line = createBoard(plan).take(failed);
    expect(line && lineText(line, 8, plain)).toBe("  web-1     failed   failed: \\x1b[2Jgone\\nweb-2 ok");
  });
});

describe("the exit code of a fan-out", () => {
  const summary = (init: MessageInitShape<typeof FanOutSummarySchema>) => create(FanOutSummarySchema, init);
  it.each([
    ["all succeeded", { succeeded: true }, 0],
    [
      "the first of the plan that failed decides",
      {
        failed: {
          "web-3": testCall({ state: CallState.TIMED_OUT, error: { reason: ErrorReason.TIMED_OUT } }),
          "web-2": testCall({ state: CallState.DENIED, error: { reason: ErrorReason.POLICY_DENIED } }),
        },
      },
      3,
    ],
    [
      "a program that failed is a tool that failed",
      { failed: { "web-1": testCall({ state: CallState.SUCCEEDED, error: { reason: ErrorReason.TOOL_FAILED } }) } },
      9,
    ],
    ["one that is held", { failed: { "web-1": testCall({ state: CallState.HELD }) } }, 4],
    ["one that still runs is no success", { failed: { "web-1": testCall({ state: CallState.DISPATCHED }) } }, 9],
    ["it was denied as a whole", { notStarted: ["web-1"], stopped: { reason: ErrorReason.POLICY_DENIED } }, 3],
    ["it is still held", { notStarted: ["web-1"], stopped: { reason: ErrorReason.APPROVAL_REQUIRED } }, 4],
    ["some are kept for their devices", { queued: ["web-1"] }, 4],
  ])("%s", (_, init, code) => {
    expect(exitCodeOfFanOut(plan, summary(init))).toBe(code);
  });
});
