import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import type { ExecutionOutput } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ExecutionOutcome } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { openTestAgent, type TestAgent } from "../../services/device-agent/testing/test-agent.ts";
import { eventually } from "../../testkit/eventually.ts";
import { LINK_WAYS } from "./ways.ts";

/** Writes a line each time that it is started, and ends when the file `go` exists. */
const COUNTED = {
  argv: ["sh", "-c", "echo started >> starts; echo ready; until [ -e go ]; do sleep 0.02; done; echo gone"],
};

async function startsOf(device: TestAgent): Promise<number> {
  const text = await readFile(`${device.work}/starts`, "utf8").catch(() => "");
  return text.split("\n").length - 1;
}

describe.each(LINK_WAYS)("$name", ({ open }) => {
  test("carries a call, its output and its end", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const outputs: ExecutionOutput[] = [];
    const start = await device.grants.start({ tool: "exec", args: { argv: ["seq", "1", "50000"] } });
    const end = await linked.link.start(start, (output) => void outputs.push(output));
    expect(end).toMatchObject({
      kind: "finished",
      finished: { callId: start.callId, outcome: ExecutionOutcome.SUCCEEDED },
    });
    expect(outputs.map(({ sequence }) => sequence)).toEqual(outputs.map((_, index) => index));
    expect(Buffer.concat(outputs.map(({ data }) => data)).toString()).toMatch(/^1\n2\n[\d\n]*\n50000\n$/);
  });

  test("carries many calls at once, small ones beside large ones", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const text = "x".repeat(256 * 1024);
    await device.execute("fs.write", { path: `${device.work}/large`, text });
    const calls = Array.from({ length: 60 }, (_, index) =>
      index % 10 === 0
        ? { tool: "fs.read", args: { path: `${device.work}/large`, maxBytes: text.length } }
        : { tool: "device.ping", args: { text: String(index) } },
    );
    const starts = await Promise.all(calls.map((call) => device.grants.start(call)));
    const ends = await Promise.all(starts.map((start) => linked.link.start(start, () => undefined)));
    expect(ends.map((end) => end.kind === "finished" && end.finished.outcome)).toEqual(
      ends.map(() => ExecutionOutcome.SUCCEEDED),
    );
  });

  test("both sides notice a link that is dead without a word, and a running call is picked up after it, not run again", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const { link, proxy, seen } = linked;
    const ready = Promise.withResolvers<void>();
    const start = await device.grants.start({ tool: "exec", args: COUNTED });
    const ended = link.start(start, async () => ready.resolve());
    await ready.promise;
    proxy.blackhole();
    await eventually(() => expect([seen.downs, seen.deviceEnds.length]).toEqual([1, 1]));
    proxy.restore();
    await eventually(() => expect(seen.hellos.length).toBeGreaterThan(1));
    await device.execute("fs.write", { path: `${device.work}/go` });
    expect(await ended).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.SUCCEEDED } });
    expect(await startsOf(device)).toBe(1);
  });

  test("a call that ended while the link was down learns once it is back", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const { link, proxy, seen } = linked;
    const ready = Promise.withResolvers<void>();
    const start = await device.grants.start({ tool: "exec", args: COUNTED });
    const ended = link.start(start, async () => ready.resolve());
    await ready.promise;
    proxy.blackhole();
    await eventually(() => expect(seen.downs).toBe(1));
    await device.execute("fs.write", { path: `${device.work}/go` });
    await eventually(async () =>
      expect((await device.client.getExecution({ callId: start.callId })).running).toBe(false),
    );
    proxy.restore();
    expect(await ended).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.SUCCEEDED } });
    expect(await startsOf(device)).toBe(1);
  });

  test("comes back after each of many resets, and a call that is under way all the time runs once", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const { link, proxy, seen } = linked;
    const start = await device.grants.start({ tool: "exec", args: COUNTED });
    const ended = link.start(start, () => undefined);
    for (let resets = 1; resets <= 5; resets++) {
      await eventually(() => expect(seen.hellos.length).toBeGreaterThanOrEqual(resets));
      proxy.cut();
      await eventually(() => expect(seen.downs).toBeGreaterThanOrEqual(resets));
    }
    await device.execute("fs.write", { path: `${device.work}/go` });
    expect(await ended).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.SUCCEEDED } });
    expect(await startsOf(device)).toBe(1);
  });

  test("a cancel reaches a call that was picked up after a break", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const ready = Promise.withResolvers<void>();
    const start = await device.grants.start({ tool: "exec", args: COUNTED });
    const ended = linked.link.start(start, async () => ready.resolve());
    await ready.promise;
    linked.proxy.cut();
    linked.link.cancel(start.callId);
    expect(await ended).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.CANCELED } });
  });

  test("a device that closes still reports how its calls ended", async () => {
    await using device = await openTestAgent();
    await using linked = await open(device);
    const ready = Promise.withResolvers<void>();
    const starts = await Promise.all([1, 2, 3].map(() => device.grants.start({ tool: "exec", args: COUNTED })));
    const ends = starts.map((start) => linked.link.start(start, async () => ready.resolve()));
    await ready.promise;
    await eventually(async () => expect(await startsOf(device)).toBe(3));
    await linked.closeDevice();
    for (const end of await Promise.all(ends)) {
      expect(end).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.CANCELED } });
    }
    await eventually(() => expect(linked.seen.downs).toBe(1));
  });
});
