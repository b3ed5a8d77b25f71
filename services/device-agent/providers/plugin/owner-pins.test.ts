import { expect, test } from "vitest";
import { SandboxLevel } from "../../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { ServerDeclaration } from "../../../../lib/plugin/server-declaration.ts";
import { whyNotPinned } from "./owner-pins.ts";

const digest = "ab".repeat(32);
const server = (permissionClass: string) =>
  ({ name: "files", place: { kind: "program", permissionClass } }) as unknown as ServerDeclaration;
const address = { name: "far", place: { kind: "address" } } as unknown as ServerDeclaration;
const plugin = { digest, manifest: { name: "load", envAllow: ["LANG"], servers: [server("workspace")] } };
const owner = {
  plugins: [{ $typeName: "reeve.device.v1.PinnedPlugin" as const, name: "load", digest }],
  environment: ["LANG"],
  sandbox: SandboxLevel.WORKSPACE,
};

test("a plugin that the owner's manifest pins as it is may be used", () => {
  expect(whyNotPinned(plugin, owner)).toBeUndefined();
});

test.each([
  ["is not named", plugin, { ...owner, plugins: [] }, "does not name it under plugins"],
  ["has changed", { ...plugin, digest: "cd".repeat(32) }, owner, "with another digest"],
  ["asks for another variable", plugin, { ...owner, environment: [] }, "asks for the variable LANG"],
  [
    "has a server below the floor",
    { ...plugin, manifest: { ...plugin.manifest, servers: [server("workspace"), server("host")] } },
    owner,
    "its MCP server files runs at the level none",
  ],
  [
    "has a server elsewhere",
    { ...plugin, manifest: { ...plugin.manifest, servers: [address] } },
    owner,
    "its MCP server far runs at the level none",
  ],
  ["has a server below a stricter floor", plugin, { ...owner, sandbox: SandboxLevel.READ_ONLY }, "demands read_only"],
])("one that %s may not", (_, one, bounds, message) => {
  expect(whyNotPinned(one, bounds)).toContain(message);
});
