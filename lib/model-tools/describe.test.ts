import { expect, it } from "vitest";
import { describeTool } from "./describe.ts";

it("marks a tool that runs on a device", () => {
  const description = "Execute a command on the remote device.";
  expect(describeTool({ description, capability: "shell.exec", requiresApproval: false })).toBe(
    "Execute a command on the remote device. [device_mesh: shell.exec]",
  );
});

it("says where every call waits for a human", () => {
  const tool = { description: "Install an OS package.\n", capability: "pkg.install", requiresApproval: true };
  expect(describeTool(tool)).toBe("Install an OS package. [device_mesh: pkg.install] (approval required)");
});

it("marks a tool without a description", () => {
  expect(describeTool({ description: " ", capability: "x", requiresApproval: false })).toBe("[device_mesh: x]");
});
