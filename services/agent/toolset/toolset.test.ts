import { create } from "@bufbuild/protobuf";
import { createRouterTransport } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { registryClient } from "../../../client/registry.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkState } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { DeviceService } from "../../../gen/ts/reeve/device/v1/device_service_pb.ts";
import { ToolSchema } from "../../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { ToolService } from "../../../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import { loadToolset, toolsetOf } from "./toolset.ts";

const laptop = { id: "dev-1", name: "laptop", link: LinkState.ONLINE };
const server = { id: "dev-2", name: "server", link: LinkState.ONLINE };
const asleep = { id: "dev-3", name: "asleep", link: LinkState.OFFLINE };

const tool = (name: string, more: { schemaDigest?: string; requiresApproval?: boolean } = {}) =>
  create(ToolSchema, {
    name,
    description: `Does ${name}.`,
    capabilities: [name === "exec" ? "shell.exec" : name],
    inputSchema: { type: "object", properties: { path: { type: "string" } } },
    schemaDigest: "d1",
    ...more,
  });

/** A registry with one tool or device on each page. */
function registry(
  devices: { id: string; name: string; link: LinkState }[],
  tools: Record<string, ReturnType<typeof tool>[]>,
) {
  const page = <T>(items: T[], token: string) => {
    const at = token === "" ? 0 : Number(token);
    return { items: items.slice(at, at + 1), nextPageToken: at + 1 < items.length ? String(at + 1) : "" };
  };
  const transport = createRouterTransport(({ service }) => {
    service(DeviceService, {
      getDevice({ device }) {
        const found = devices.find((one) => one.id === device || one.name === device);
        if (found === undefined) throw fault(ErrorReason.UNKNOWN_DEVICE, { device });
        return { device: found };
      },
      listDevices({ pageToken }) {
        const { items, nextPageToken } = page(devices, pageToken);
        return { devices: items, nextPageToken };
      },
    });
    service(ToolService, {
      listTools({ device, pageToken }) {
        const { items, nextPageToken } = page(tools[device] ?? [], pageToken);
        return { tools: items, nextPageToken };
      },
    });
  });
  return registryClient(transport);
}

describe("a toolset", () => {
  it("holds every page of every device that is online", async () => {
    const client = registry([laptop, asleep], { "dev-1": [tool("exec"), tool("fs.list"), tool("fs.read")] });
    const toolset = await loadToolset(client);
    expect(toolset.devices).toEqual([{ id: "dev-1", name: "laptop" }]);
    expect(toolset.warnings).toEqual([]);
    expect(toolset.tools.map(({ name, description }) => [name, description])).toEqual([
      ["exec", "Does exec. [device_mesh: shell.exec]"],
      ["fs.list", "Does fs.list. [device_mesh: fs.list]"],
      ["fs.read", "Does fs.read. [device_mesh: fs.read]"],
    ]);
    expect(toolset.tools[0]?.inputSchema.properties).toEqual({ path: { type: "string" } });
  });

  it("lets the model choose among the devices that have a tool, where there is more than one device", async () => {
    const client = registry([laptop, server], { "dev-1": [tool("exec"), tool("fs.read")], "dev-2": [tool("exec")] });
    const { tools } = await loadToolset(client);
    const choices = tools.map(({ name, inputSchema }) => [name, inputSchema.properties]);
    expect(choices).toEqual([
      ["exec", expect.objectContaining({ device: expect.objectContaining({ enum: ["laptop", "server"] }) })],
      ["fs.read", expect.objectContaining({ device: expect.objectContaining({ enum: ["laptop"] }) })],
    ]);
  });

  it("is plain JSON, so that a run can keep it", async () => {
    const toolset = await loadToolset(registry([laptop], { "dev-1": [tool("exec")] }));
    expect(JSON.parse(JSON.stringify(toolset))).toEqual(toolset);
  });

  it("holds the devices that were named, once each, and refuses one that does not exist", async () => {
    const client = registry([laptop, server], { "dev-2": [tool("exec")] });
    const { devices } = await loadToolset(client, { devices: ["server", "dev-2"] });
    expect(devices).toEqual([{ id: "dev-2", name: "server" }]);
    const missing = loadToolset(client, { devices: ["toaster"] });
    await expect(missing).rejects.toSatisfy((error) => reasonOf(error) === ErrorReason.UNKNOWN_DEVICE);
  });

  it("is narrowed to the allow list, with a warning for what is unknown", async () => {
    const client = registry([laptop], { "dev-1": [tool("exec"), tool("fs.read")] });
    const { tools, warnings } = await loadToolset(client, { toolsAllowed: ["fs.read", "memory.recall"] });
    expect(tools.map(({ name }) => name)).toEqual(["fs.read"]);
    expect(warnings).toEqual(['tools_allowed lists unknown tool "memory.recall": dropped']);
  });

  it("leaves a tool out on a device whose schema differs, and says so", () => {
    const offers = [
      { device: laptop, tool: tool("shots:take") },
      { device: server, tool: tool("shots:take", { schemaDigest: "d2" }) },
    ];
    const { tools, warnings } = toolsetOf([laptop, server], offers, []);
    expect(tools[0]?.devices).toEqual([laptop]);
    expect(warnings).toEqual(["shots:take on server differs from the one on laptop: left out there"]);
  });

  it("marks a tool that needs approval on any of its devices", () => {
    const offers = [
      { device: laptop, tool: tool("exec") },
      { device: server, tool: tool("exec", { requiresApproval: true }) },
    ];
    expect(toolsetOf([laptop, server], offers, []).tools[0]?.description).toMatch(/\(approval required\)$/);
  });

  it("says when there is nothing", async () => {
    expect((await loadToolset(registry([asleep], {}))).warnings).toEqual(["no device is online: there are no tools"]);
    expect((await loadToolset(registry([laptop], {}))).warnings).toEqual(["no tool is left: the model can only talk"]);
  });
});
