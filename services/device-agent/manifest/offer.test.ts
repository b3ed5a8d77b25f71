import { expect, test } from "vitest";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { type OfferableTool, offerTools } from "./offer.ts";

function tool(name: string, scope: OfferableTool["scope"], capabilities = [name]): { spec: OfferableTool } {
  return { spec: { name, capabilities, scope } };
}

const list = tool("fs.list", "user", ["fs.read"]);
const read = tool("fs.read", "user");
const install = tool("pkg.install", "sudo");
const shell = tool("shell.eval", "any");
const docker = tool("docker.list", "user");
const available = [shell, read, list, install];
const known = [...available, docker].map(({ spec }) => spec);

test.each([
  ["user", Mode.USER, ["shell.eval", "fs.read", "fs.list"]],
  ["sudo", Mode.SUDO, ["shell.eval", "pkg.install"]],
  ["all", Mode.ALL, ["shell.eval", "fs.read", "fs.list", "pkg.install"]],
  ["no stated", Mode.UNSPECIFIED, ["shell.eval", "fs.read", "fs.list"]],
])("%s mode offers its tools", (_, mode, names) => {
  expect([...offerTools(available, known, { mode }).tools.keys()]).toEqual(names);
});

test("capabilities are sorted, without repeats, and only of offered tools", () => {
  expect(offerTools(available, known, { mode: Mode.USER }).capabilities).toEqual(["fs.read", "shell.eval"]);
});

test("the owner's list narrows the offer", () => {
  const offer = offerTools(available, known, { mode: Mode.USER, capabilities: ["fs.read", "pkg.install"] });
  expect([...offer.tools.keys()]).toEqual(["fs.read", "fs.list"]);
});

test("a tool that needs two capabilities is offered where both are granted, and not for one of them", () => {
  const both = tool("fs.both", "user", ["fs.read", "pkg.install"]);
  const offered = (...capabilities: string[]) =>
    offerTools([both], [both.spec], { mode: Mode.USER, capabilities }).tools.size;
  expect([offered("fs.read", "pkg.install"), offered("fs.read"), offered("pkg.install"), offered()]).toEqual([
    1, 0, 0, 0,
  ]);
});

test("a capability that no tool has is named; one whose tool is missing here is not", () => {
  const offer = offerTools(available, known, { mode: Mode.USER, capabilities: ["fs.reed", "docker.list"] });
  expect(offer.unknown).toEqual(["fs.reed"]);
  expect(offer.tools.size).toBe(0);
});
