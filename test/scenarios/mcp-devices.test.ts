import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { MCP_CLIENTS } from "../../testkit/mcp-clients.ts";

let plane: ControlPlane;

beforeAll(async () => {
  plane = await startControlPlane({ devices: { this: {}, other: {} }, ownFolders: true });
});
afterAll(() => plane.close());

test("a tool of several devices names the device, and a device that goes offline is listed no more", async () => {
  const agent = await MCP_CLIENTS["SDK v1, 2025-11-25"](plane.registry.url, plane.tokens.agent);
  const listed = async () => (await agent.list()).find(({ name }) => name === "device_ping")?.inputSchema;
  expect(await listed()).toMatchObject({ properties: { device: { enum: ["other", "this"] } }, required: ["device"] });
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
