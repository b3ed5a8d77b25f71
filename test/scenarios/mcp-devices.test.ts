import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { MCP_CLIENTS, type McpClientName } from "../../testkit/mcp-clients.ts";

let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane({
    devices: { this: {}, other: {} },
    ownFolders: true,
  });
});
afterAll(() => plane.close());

const online = async (device: string) => {
  const { registry } = callerOf(plane, plane.tokens.operator);
  return (await registry.getDevice({ device })).device?.link === LinkState.ONLINE;
};
const NAMES = Object.keys(MCP_CLIENTS) as McpClientName[];

test.each(NAMES)("a device that goes offline while a call runs: %s reads that its end is not known", async (name) => {
  await eventually(async () => expect(await online("other")).toBe(true));
  const agent = await MCP_CLIENTS[name](plane.registry.url, plane.tokens.agent);
  const operator = callerOf(plane, plane.tokens.operator);
  const messages: string[] = [];
  const onProgress = (message: string) => messages.push(message);
  const using = agent.use(
    "exec",
    { device: "other", argv: ["sh", "-c", `echo on; sleep 60; : ${name}`] },
    { onProgress },
  );
  const held = await eventually(async () => {
    const { approvals } = await operator.approvals.listApprovals({ state: ApprovalState.PENDING });
    const found = approvals.find(({ spec }) => JSON.stringify(spec?.arguments).includes(name));
    return found?.spec ?? Promise.reject(new Error("it is not held"));
  });
  await approveCall(operator, held.callId);
  await eventually(() => expect(messages.join("\n")).toContain("on\n"));
  const other = plane.device("other").process;
  await other.kill();
  await other.start();
  const { isError, text } = await using;
  expect([isError, text]).toEqual([true, expect.stringMatching(/error: interrupted[\s\S]*Look before doing it again/)]);
  await agent.close();
});

test("a tool of several devices names the device, and a device that goes offline is listed no more", async () => {
  const agent = await MCP_CLIENTS["SDK v1, 2025-11-25"](plane.registry.url, plane.tokens.agent);
  const listed = async () => (await agent.list()).find(({ name }) => name === "device_ping")?.inputSchema;
  const properties = { device: { enum: ["other", "this"] } };
  await eventually(async () => expect(await listed()).toMatchObject({ properties, required: ["device"] }));
  const pinged = await agent.use("device_ping", { device: "other" });
  expect(pinged.isError).toBe(false);
  expect((await agent.use("device_ping", {})).text).toMatch(/error: device_required.*\navailable: other, this/);
  expect((await agent.use("device_ping", { device: "third" })).text).toContain("error: unknown_device");

  const changed: number[] = [];
  const follower = new Client(
    { name: "follower", version: "1.0.0" },
    {
      versionNegotiation: { mode: "auto" },
      listChanged: { tools: { autoRefresh: true, onChanged: (_, tools) => void changed.push(tools?.length ?? 0) } },
    },
  );
  const headers = { authorization: `Bearer ${plane.tokens.agent}` };
  const url = new URL(`${plane.registry.url}/mcp`);
  await follower.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  await plane.device("other").process.stop();
  await eventually(() => expect(changed.length).toBeGreaterThan(0));
  expect(await listed()).not.toHaveProperty("properties.device");
  expect((await agent.use("device_ping", {})).isError).toBe(false);
  await follower.close();
  await agent.close();
});
