import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { beforeAll, expect, test } from "vitest";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { builtInTools } from "../../../lib/toolschema/built-in-tools.ts";
import { compileSource, descriptorSetOf, PRINTER_PROTO } from "../../../testkit/printer.ts";
import { rememberDescriptions } from "./announced.ts";
import { offeredTools } from "./offered.ts";

let printer: Uint8Array;
beforeAll(async () => {
  printer = descriptorSetOf(
    await compileSource(PRINTER_PROTO.replace('capabilities: ["print"]', 'capabilities: ["fs.read"]')),
  );
});

/** What callers can use on a device that announces these, and that grants these capabilities. */
function offer(announced: AnnouncedTools[], capabilities: string[], mode: Mode = Mode.USER) {
  return offeredTools({ announced, capabilities, mode, unavailable: [] }, builtInTools(), []);
}

function announce(name: string, service = "acme.printer.v1.Printer", descriptorSet = printer): AnnouncedTools {
  return create(AnnouncedToolsSchema, { name, definition: { case: "service", value: { service, descriptorSet } } });
}

test("an announced tool is offered as far as the manifest grants its own capability", () => {
  const capabilities = ["fs.read", "printer:fs.read"];
  const { tools } = offer([announce("printer")], capabilities);
  expect([...tools.keys()].toSorted()).toEqual(["fs.read", "printer:print"]);
  expect(tools.get("printer:print")?.spec.capabilities).toEqual(["printer:fs.read"]);
  expect([...offer([announce("printer")], ["fs.read"]).tools.keys()]).toEqual(["fs.read"]);
});

test("each call waits for a human where the device is in sudo mode", () => {
  const { tools } = offer([announce("printer")], ["printer:fs.read"], Mode.SUDO);
  expect(tools.get("printer:print")?.requiresApproval).toBe(true);
});

test("what is hostile is left out with why, and takes nothing from the rest", () => {
  const set = fromBinary(FileDescriptorSetSchema, printer);
  for (const file of set.file) if (file.package === "acme.printer.v1") file.package = "reeve.tools.v1";
  const shadow = announce("printer", "reeve.tools.v1.Printer", toBinary(FileDescriptorSetSchema, set));
  const services = [
    shadow,
    announce("fs.read"),
    announce("a:b"),
    announce("large", "acme.printer.v1.Printer", new Uint8Array(1024 * 1024 + 1)),
    announce("noise", "acme.printer.v1.Printer", Uint8Array.of(1, 2, 3)),
    announce("good"),
  ];
  const { tools, refused } = offer(services, ["fs.read", "good:fs.read"]);
  expect([...tools.keys()].toSorted()).toEqual(["fs.read", "good:print"]);
  expect(tools.get("fs.read")?.spec.method).toBe("reeve.tools.v1.FileSystem/Read");
  expect(refused.map(({ name }) => name)).toEqual(["printer", "fs.read", "a:b", "large", "noise"]);
});

test("what was refused is not read again, and drives out nothing that is in use", () => {
  let described = 0;
  const describe = rememberDescriptions(({ name }) => {
    described++;
    if (name === "good") return { tools: [], unavailable: [], built: 0 };
    throw new Error("over a limit");
  });
  const bad = announce("bad");
  describe(announce("good"));
  for (let at = 0; at < 3; at++) expect(() => describe(bad)).toThrow("over a limit");
  expect(described).toBe(2);
  for (let at = 0; at < 3000; at++) expect(() => describe(announce(`bad-${at}`))).toThrow("over a limit");
  expect(describe(announce("good")).tools).toEqual([]);
  expect(described).toBe(3002);
  // Bounded: the first was forgotten meanwhile.
  expect(() => describe(bad)).toThrow("over a limit");
  expect(described).toBe(3003);
});
