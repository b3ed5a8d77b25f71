import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { GrantPurpose } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { PreviewFact } from "../../../lib/tool/preview.ts";
import { PING_CALL, ping, run } from "../testing/test-calls.ts";
import { openTestDevice, type TestDevice } from "../testing/test-executions.ts";
import type { DeviceTool } from "../tools/tool.ts";

const LOOK = { ...PING_CALL, callId: "preview#1" };
const PREVIEW = { purpose: GrantPurpose.PREVIEW, version: 2 } as const;

/** device.ping with a preview, and how often each of the two was made. */
function previewedPing() {
  const world = { facts: [{ name: "target", value: "one" }] as PreviewFact[], ran: 0, looked: 0 };
  const preview = async () => {
    world.looked++;
    return world.facts;
  };
  const tool: DeviceTool = {
    spec: ping.spec,
    prepare(args) {
      const prepared = ping.prepare(args);
      if (!prepared.ok) return prepared;
      const counted = (context: Parameters<typeof prepared.run>[0]) => {
        world.ran++;
        return prepared.run(context);
      };
      return { ok: true, run: counted, preview };
    },
  };
  return { tool, world };
}

/** The digest of a preview that the device made under the id of LOOK. */
async function lookedAt(device: TestDevice): Promise<string> {
  const end = await run(device, await device.grants.start(LOOK, PREVIEW));
  expect(end.outcome).toBe(ExecutionOutcome.SUCCEEDED);
  expect(device.receiptOf(end)).toMatchObject({ callId: LOOK.callId, outputDigest: sha256Hex(end.output) });
  return sha256Hex(end.output);
}

const approved = async (device: TestDevice, previewDigest: string) =>
  run(device, await device.grants.start(PING_CALL, { previewId: LOOK.callId, previewDigest }));

describe("a grant for a preview", () => {
  test("lets the device look, and run nothing", async () => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    const end = await run(device, await device.grants.start(LOOK, PREVIEW));
    expect(JSON.parse(Buffer.from(end.output).toString())).toEqual({ facts: [{ name: "target", value: "one" }] });
    expect(world).toMatchObject({ ran: 0, looked: 1 });
  });

  test("gives the same preview again, also of something else by then", async () => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    const digest = await lookedAt(device);
    world.facts = [{ name: "target", value: "two" }];
    expect(await lookedAt(device)).toBe(digest);
    expect(world.looked).toBe(1);
  });

  test.each([
    ["of the version of a run", { purpose: GrantPurpose.PREVIEW, version: 1 }],
    ["of a purpose that is not known", { purpose: 7 as GrantPurpose, version: 2 }],
    ["of a run with the version of a preview", { version: 2 }],
  ])("%s is refused", async (_, changes) => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    const end = await run(device, await device.grants.start(LOOK, changes));
    expect(end).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.GRANT_INVALID } });
    expect(world).toMatchObject({ ran: 0, looked: 0 });
  });

  test("is refused for a tool that has none", async () => {
    await using device = await openTestDevice({ tools: [ping] });
    const end = await run(device, await device.grants.start(LOOK, PREVIEW));
    expect(end).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.NOT_AVAILABLE } });
  });

  test("shows what a call would fail for, and fails where it was cut off", async () => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    Object.defineProperty(world, "facts", {
      get: () => {
        throw fault(ErrorReason.OS_REFUSED, { field: "path", errno: "EACCES" }, { message: "/a is not yours" });
      },
      configurable: true,
    });
    const shown = await run(device, await device.grants.start(LOOK, PREVIEW));
    expect(Buffer.from(shown.output).toString()).toBe('{"facts":[{"name":"would fail","value":"/a is not yours"}]}');
    Object.defineProperty(world, "facts", { get: () => new Promise(() => undefined) });
    const start = await device.grants.start(
      { ...LOOK, callId: "preview#2" },
      { ...PREVIEW, timeout: durationFromMs(50) },
    );
    expect(await run(device, start)).toMatchObject({ outcome: ExecutionOutcome.TIMED_OUT });
  });
});

describe("a call whose approver was shown a preview", () => {
  test("runs where it holds still", async () => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    const end = await approved(device, await lookedAt(device));
    expect(end.outcome).toBe(ExecutionOutcome.SUCCEEDED);
    expect(world).toMatchObject({ ran: 1, looked: 2 });
  });

  test("does not run where it does not, and says what changed", async () => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    const digest = await lookedAt(device);
    world.facts = [
      { name: "target", value: "two" },
      { name: "more", value: "secret", isContent: true },
    ];
    const end = await approved(device, digest);
    expect(end).toMatchObject({
      outcome: ExecutionOutcome.FAILED,
      error: { reason: ErrorReason.PRECONDITION_CHANGED, metadata: { field: "target" } },
      message: expect.stringContaining('target was "one" and is "two"; more is another'),
    });
    expect(end.message).not.toContain("secret");
    expect(world.ran).toBe(0);
  });

  test("does not run by the digest of a preview that the device did not make", async () => {
    const { tool, world } = previewedPing();
    await using device = await openTestDevice({ tools: [tool] });
    const end = await approved(device, sha256Hex("another"));
    expect(end).toMatchObject({ error: { reason: ErrorReason.PRECONDITION_CHANGED, metadata: { field: "" } } });
    expect(world.ran).toBe(0);
  });

  test("does not run where the tool has none any more", async () => {
    await using device = await openTestDevice({ tools: [ping] });
    const end = await approved(device, sha256Hex("any"));
    expect(end).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.NOT_AVAILABLE } });
  });
});
