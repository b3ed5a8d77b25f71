import { expect, test } from "vitest";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import { offeredTools } from "./offered.ts";

const catalog = builtInTools();
const capabilities = [...catalog.values()].flatMap((tool) => tool.spec.capabilities);
const offer = (mode: Mode, allowed: string[] = []) =>
  offeredTools({ capabilities, mode, unavailable: [], announced: [] }, catalog, allowed);

test("asks a human for every call of a tool that changes the machine for others", () => {
  const { tools } = offer(Mode.ALL);
  const held = [...tools].filter(([, tool]) => tool.requiresApproval).map(([name]) => name);
  expect(held.sort()).toEqual(["docker.exec", "pkg.install", "proc.kill", "ssh.exec"]);
});

test("asks a human for every call of a device in sudo mode", () => {
  const { tools } = offer(Mode.SUDO);
  expect([...tools.values()].every((tool) => tool.requiresApproval)).toBe(true);
});

test("keeps only what the allow list names, and returns which names are unknown", () => {
  const { tools, unknown } = offer(Mode.USER, ["fs.read", "project.create"]);
  expect([...tools.keys()]).toEqual(["fs.read"]);
  expect(unknown).toEqual(["project.create"]);
});

test("leaves out what the manifest does not grant and what the machine cannot do", () => {
  const manifest = {
    capabilities: ["fs.read", "pkg.search"],
    mode: Mode.USER,
    announced: [],
    unavailable: [{ $typeName: "reeve.device.v1.UnavailableTool" as const, tool: "pkg.search", why: "no apt" }],
  };
  expect([...offeredTools(manifest, catalog, []).tools.keys()]).toEqual(["fs.read"]);
});
