import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkState } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { openCallStream, printedIn } from "../../../testkit/call-stream.ts";
import { callIn, type Scene } from "./scene.ts";

/** Built from parts, so that no scanner takes this file for a leak. */
const SECRET = `ghp_${"aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zZ1234"}`;

/** What callers get to see: of tools, of calls, and of what came back from the device. */
export function describeViews(scene: () => Scene): void {
  test("secrets and escape sequences are taken out of the output, live and at the end", async () => {
    const { operator, newCallId } = scene();
    const callId = newCallId();
    const argv = ["printf", "\\033[31mred\\033[0m %s\\nand \\033]0;title\\007more\\n", `token=${SECRET}`];
    const stream = openCallStream(operator.registry);
    stream.call({ tool: "exec", params: { argv }, callId });
    const call = await stream.ended(callId);
    await stream.end();
    const clean = "red token=[redacted: github_token]\nand more\n";
    expect(call).toMatchObject({
      status: { state: CallState.SUCCEEDED, outputSanitized: true, output: { stdout: clean } },
    });
    expect(stream.seen.map((event) => printedIn(event) ?? "").join("")).toBe(clean);
    const stored = callIn(await operator.registry.getCall({ callId }));
    expect(stored.status.output).toEqual(call.status.output);
  });

  test("errors of the device are cleaned too", async () => {
    const { operator, newFile } = scene();
    const argv = ["bash", "-c", `printf '\\033[31m%s' ${SECRET} >&2; sleep 60`];
    const call = callIn(await operator.registry.callTool({ tool: "exec", params: { argv, timeoutMs: 300 } }));
    expect(call.status.state).toBe(CallState.TIMED_OUT);
    expect(call.status.errorMessage).toContain("[redacted: github_token]");
    const folder = newFile();
    await mkdir(dirname(folder), { recursive: true });
    const missing = callIn(
      await operator.registry.callTool({ tool: "fs.read", params: { path: `${folder}\u001b[31m` } }),
    );
    expect(missing).toMatchObject({
      status: { state: CallState.FAILED, error: { reason: ErrorReason.TARGET_NOT_FOUND } },
    });
    expect(missing.status.errorMessage).not.toContain("\u001b");
  });

  test("an unknown tool is refused with the tools that there are", async () => {
    const { operator } = scene();
    const error: unknown = await operator.registry.callTool({ tool: "exec2", params: {} }).catch((thrown) => thrown);
    expect(reasonOf(error)).toBe(ErrorReason.UNKNOWN_TOOL);
    const { tools } = await operator.registry.listTools({});
    const available = faultDetail(error)?.metadata.available?.split(", ");
    expect(available).toEqual(tools.map(({ name }) => name));
    expect(available).toContain("exec");
  });

  test("a tool that the machine cannot do is not listed, and says so when it is called", async () => {
    const { operator } = scene();
    const { tools } = await operator.registry.listTools({});
    expect(tools.map(({ name }) => name)).not.toContain("docker.list");
    const { device } = await operator.registry.getDevice({ device: "this" });
    expect(device).toMatchObject({ name: "this", link: LinkState.ONLINE });
    expect(device?.unavailable.map(({ tool }) => tool)).toContain("docker.list");
    const error: unknown = await operator.registry.callTool({ tool: "docker.list" }).catch((thrown) => thrown);
    expect(reasonOf(error)).toBe(ErrorReason.NOT_AVAILABLE);
    expect(faultDetail(error)?.metadata).toMatchObject({ tool: "docker.list" });
  });

  test("an unknown device is refused with the devices that there are", async () => {
    const { operator, deviceNames } = scene();
    const error: unknown = await operator.registry
      .callTool({ device: "laptop", tool: "device.ping" })
      .catch((thrown) => thrown);
    expect(reasonOf(error)).toBe(ErrorReason.UNKNOWN_DEVICE);
    expect(faultDetail(error)?.metadata).toEqual({ device: "laptop", available: deviceNames });
  });

  test("a list of calls comes newest first, in pages that miss and repeat nothing", async () => {
    const { operator, agent, newCallId } = scene();
    const ids: string[] = [];
    for (let count = 0; count < 5; count++) {
      const callId = newCallId();
      ids.push(callIn(await agent.registry.callTool({ tool: "device.ping", params: { text: callId }, callId })).id);
    }
    const listed: string[] = [];
    let pageToken = "";
    do {
      const page = await operator.registry.listCalls({ tool: "device.ping", pageSize: 2, pageToken });
      expect(page.calls.length).toBeLessThanOrEqual(2);
      expect(page.calls.map(({ status }) => status?.output)).toEqual(page.calls.map(() => undefined));
      listed.push(...page.calls.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(listed.slice(0, 5)).toEqual(ids.toReversed());
    expect(new Set(listed).size).toBe(listed.length);
  });

  test("a list of calls can be narrowed by state and device", async () => {
    const { operator, agent } = scene();
    const denied = callIn(await agent.registry.callTool({ tool: "fs.read", params: { path: "/etc/shadow" } }));
    const { calls } = await operator.registry.listCalls({ state: CallState.DENIED, device: "this" });
    expect(calls.map(({ id }) => id)).toContain(denied.id);
    expect(new Set(calls.map(({ status }) => status?.state))).toEqual(new Set([CallState.DENIED]));
  });

  test("an agent does not see the calls of others", async () => {
    const { operator, agent, newCallId } = scene();
    const callId = newCallId();
    await operator.registry.callTool({ tool: "device.ping", params: { text: "not yours" }, callId });
    const own = callIn(await agent.registry.callTool({ tool: "device.ping", params: { text: "mine" } }));
    const looks = [
      agent.registry.getCall({ callId }),
      agent.registry.cancelCall({ callId }),
      Array.fromAsync(agent.registry.watchCall({ callId })),
    ].map((look) => look.catch(reasonOf));
    for (const look of looks) expect(await look).toBe(ErrorReason.NOT_FOUND);
    const { calls } = await agent.registry.listCalls({ pageSize: 250 });
    expect(calls.map(({ id }) => id)).toContain(own.id);
    expect(new Set(calls.map(({ spec }) => spec?.principalId))).toEqual(new Set([own.spec.principalId]));
    const everything = await operator.registry.listCalls({ pageSize: 250 });
    expect(everything.calls.map(({ id }) => id)).toEqual(expect.arrayContaining([own.id, callId]));
  });

  test("no tool reaches what lies outside of the device's roots", async () => {
    const { operator } = scene();
    const call = callIn(await operator.registry.callTool({ tool: "fs.read", params: { path: "/etc/hostname" } }));
    expect(call).toMatchObject({
      status: { state: CallState.FAILED, error: { reason: ErrorReason.PATH_OUTSIDE_ROOTS } },
    });
  });

  test("a tool's file can be written, listed and read through the gate", async () => {
    const { agent, operator, newFile } = scene();
    const path = newFile();
    const written = { path, text: "by way of the gate\n", mode: "WRITE_MODE_CREATE" };
    expect(callIn(await agent.registry.callTool({ tool: "fs.write", params: written })).status.state).toBe(
      CallState.SUCCEEDED,
    );
    const read = callIn(await operator.registry.callTool({ tool: "fs.read", params: { path } }));
    expect(JSON.stringify(read.status.output)).toContain("by way of the gate");
    await writeFile(path, "changed beside the gate\n");
    const again = callIn(await agent.registry.callTool({ tool: "fs.read", params: { path } }));
    expect(JSON.stringify(again.status.output)).toContain("changed beside the gate");
  });
}
