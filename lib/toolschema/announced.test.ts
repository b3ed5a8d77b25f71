import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  DescriptorProtoSchema,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  type FileDescriptorProto,
  type FileDescriptorSet,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { beforeAll, describe, expect, it } from "vitest";
import { AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { compileSource, descriptorSetOf, PRINTER_PROTO, withoutComments } from "../../testkit/printer.ts";
import { type Announced, describeAnnounced } from "./announced.ts";
import { readAnnouncements } from "./announcements.ts";
import { schemaDigest } from "./digest.ts";
import { LIMITS } from "./limits.ts";

const SERVICE = "acme.printer.v1.Printer";
let printer: Uint8Array;
beforeAll(async () => {
  printer = descriptorSetOf(await compileSource(PRINTER_PROTO));
});

function announced(descriptorSet: Uint8Array, name = "printer", service = SERVICE) {
  return create(AnnouncedToolsSchema, { name, definition: { case: "service", value: { service, descriptorSet } } });
}

/** The announcement of a printer whose source is changed first. */
async function describeChanged(change: (source: string) => string): Promise<Announced> {
  const source = change(PRINTER_PROTO);
  expect(source, "the change has to find what it changes").not.toBe(PRINTER_PROTO);
  return describeAnnounced(announced(descriptorSetOf(await compileSource(source))));
}

/** The printer's descriptors with a change that no compiler would let through. */
function forged(change: (file: FileDescriptorProto, set: FileDescriptorSet) => void): Uint8Array {
  const set = fromBinary(FileDescriptorSetSchema, printer);
  const file = set.file.find(({ name }) => name === "acme/printer/v1/printer.proto");
  if (file === undefined) throw new Error("no printer");
  change(file, set);
  return toBinary(FileDescriptorSetSchema, set);
}

describe("describeAnnounced", () => {
  it("makes a tool of each annotated RPC, under the name that the owner gave the service", () => {
    const { tools, unavailable } = describeAnnounced(announced(printer));
    expect(tools.map(({ spec }) => spec.name)).toEqual(["printer:print", "printer:paper.get"]);
    expect(tools[0]?.spec).toMatchObject({
      capabilities: ["printer:print"],
      description: "Print a text on paper.",
      method: `${SERVICE}/Print`,
      annotations: { readOnly: false, destructive: true },
      inputSchema: {
        properties: { text: { minLength: 1 }, copies: { maximum: 5, description: "How many copies. At most 5." } },
        required: ["text"],
      },
    });
    expect(tools[0]?.spec.schemaDigest).toBe(schemaDigest(tools[0]?.spec.inputSchema ?? {}));
    expect(tools[1]?.spec.annotations).toMatchObject({ readOnly: true, idempotent: true });
    const why = "a tool takes one request and gives one response, not a stream";
    expect(unavailable).toEqual([{ tool: "printer:pages.watch", why }]);
  });

  it("needs no comments, which server reflection most often leaves out", async () => {
    const bare = descriptorSetOf(withoutComments(await compileSource(PRINTER_PROTO)));
    const [print] = describeAnnounced(announced(bare)).tools;
    expect(print?.spec.description).toBe(`Call ${SERVICE}/Print.`);
    expect(print?.spec.inputSchema).toMatchObject({ required: ["text"] });
  });

  it("takes an option of a newer version for what it knows of it", () => {
    const newer = forged((file) => {
      const option = file.service[0]?.method[0]?.options?.$unknown?.find(({ no }) => no === 50101);
      if (option === undefined) throw new Error("no option");
      // Field 900, a varint: its length prefix grows with it.
      const [length = 0, ...rest] = option.data;
      Object.assign(option, { data: Uint8Array.from([length + 3, ...rest, 0xa0, 0x38, 0x01]) });
    });
    expect(describeAnnounced(announced(newer)).tools[0]?.spec.name).toBe("printer:print");
  });

  it("does not believe what the announced files say of well-known ones", () => {
    const lying = forged((_, set) => {
      for (const file of set.file)
        if (file.name.startsWith("reeve/") || file.name.startsWith("google/")) file.package = "x";
    });
    expect(describeAnnounced(announced(lying)).tools).toHaveLength(2);
  });

  it("takes control characters and secrets out of what a model reads", async () => {
    const secret = `ghp_${"a1B2".repeat(9)}`;
    const { tools } = await describeChanged((text) =>
      text
        .replace("Print a text on paper.", `Print\u001b[31m ${secret}`)
        .replace("The text to print.", "A\u202e text."),
    );
    const text = JSON.stringify(tools[0]?.spec);
    expect(text).not.toContain(secret);
    expect(text).not.toMatch(/\\u001b|\u202e/);
  });

  it.each([
    [
      "a rule in CEL",
      '[(buf.validate.field).cel = { id: "x" expression: "this != \'\'" }]',
      /PrintRequest\.text has a rule/,
    ],
    [
      "a rule in a list",
      "[(buf.validate.field).string.min_len = 1];\n// More.\nrepeated string more = 9 [(buf.validate.field).repeated.items.cel_expression = \"this != ''\"]",
      /more has a rule/,
    ],
  ])("leaves out a tool with %s, which would be another party's program", async (_, rule, why) => {
    const { tools, unavailable } = await describeChanged((text) =>
      text.replace("[(buf.validate.field).string.min_len = 1]", rule),
    );
    expect(tools.map(({ spec }) => spec.name)).toEqual(["printer:paper.get"]);
    expect(unavailable[0]).toEqual({ tool: "printer:print", why: expect.stringMatching(why) as string });
  });

  it.each([
    ["a name with a colon", (text: string) => text.replace('name: "print"', 'name: "fs:read"'), "printer:Print"],
    ["no capability", (text: string) => text.replace('capabilities: ["print"]', 'capabilities: [""]'), "printer:print"],
    [
      "a capability that is no name",
      (text: string) => text.replace('capabilities: ["print"]', 'capabilities: ["a b"]'),
      "printer:print",
    ],
    [
      "no scope",
      (text: string) => text.replace('capabilities: ["print"] scope: SCOPE_USER', 'capabilities: ["print"]'),
      "printer:print",
    ],
    [
      "a field of any type",
      (text: string) =>
        text
          .replace("uint32 pages = 1", "google.protobuf.Any pages = 1")
          .replace("google/protobuf/timestamp", 'google/protobuf/any.proto";\nimport "google/protobuf/timestamp'),
      "printer:print",
    ],
    ["the name of another", (text: string) => text.replace('name: "paper.get"', 'name: "print"'), "printer:print"],
  ])("leaves out a tool with %s, and says why", async (_, change, name) => {
    const { unavailable } = await describeChanged(change);
    expect(unavailable.map(({ tool }) => tool)).toContain(name);
  });
});

describe("describeAnnounced refuses", () => {
  it.each(["", "Printer", "a:b", "x".repeat(33), "-a", "a b"])("the name %j", (name) => {
    expect(() => describeAnnounced(announced(printer, name))).toThrow(/name/);
  });

  it("what is no descriptor set, too large, or without the service", () => {
    expect(() => describeAnnounced(announced(Uint8Array.of(0xff, 0xff)))).toThrow();
    expect(() => describeAnnounced(announced(new Uint8Array(LIMITS.descriptor_bytes + 1)))).toThrow(/descriptor_bytes/);
    expect(() => describeAnnounced(announced(printer, "printer", "acme.printer.v1.Other"))).toThrow(/does not define/);
    expect(() => describeAnnounced(announced(printer, "printer", "reeve.tools.v1.Shell"))).toThrow(/does not define/);
  });

  it.each(["reeve.tools.v1", "reeve", "google.protobuf", "buf.validate", "grpc.health.v1", "a b"])(
    "the package %s",
    (name) => {
      const set = forged((file) => {
        file.package = name;
      });
      expect(() => describeAnnounced(announced(set, "printer", `${name}.Printer`))).toThrow(/package/);
    },
  );

  it.each<[string, (file: FileDescriptorProto, set: FileDescriptorSet) => void]>([
    ["a bad name", ({ messageType: [first] }) => Object.assign(first ?? {}, { name: "a b" })],
    ["a bad JSON name", (file) => nameFields(file, "a\n")],
    ["__proto__", (file) => nameFields(file, "__proto__")],
    ["one JSON name twice", (file) => nameFields(file, "same")],
    ["an unknown type", (file) => askWith(file, ".x.Y")],
    ["a missing import", ({ dependency }) => dependency.push("x/y.proto")],
    ["a file that imports itself", ({ dependency, name }) => dependency.push(name)],
    ["an edition of tomorrow", (file) => Object.assign(file, { syntax: "editions", edition: 99_999 })],
    ["too many fields", (file) => addFields(file, 10_001)],
    ["too many files", (file, { file: files }) => addFiles(files, file, 201)],
  ])("%s", (_, change) => {
    expect(() => describeAnnounced(announced(forged(change)))).toThrow();
  });

  it("messages within messages without end", () => {
    const deep = forged((file) => {
      for (let at = 0; at < 1500; at++) file.messageType.push(holder(at, at + 1));
      file.messageType.push(create(DescriptorProtoSchema, { name: "M1500" }));
      askWith(file, ".acme.printer.v1.M0");
    });
    const { tools, unavailable } = describeAnnounced(announced(deep));
    expect(tools).toEqual([]);
    expect(unavailable[0]?.why).toMatch(/over the limit tool_links/);
  });

  it("a schema that no caller would read", () => {
    const { unavailable } = describeAnnounced(announced(forged((file) => addFields(file, 5000))));
    expect(unavailable).toContainEqual({ tool: "printer:print", why: "over the limit tool_fields of 2000" });
  });
});

function nameFields({ messageType: [first] }: FileDescriptorProto, jsonName: string): void {
  for (const field of first?.field ?? []) field.jsonName = jsonName;
}

function askWith({ service: [first] }: FileDescriptorProto, inputType: string): void {
  for (const method of first?.method ?? []) method.inputType = inputType;
}

function addFields({ messageType: [first] }: FileDescriptorProto, count: number): void {
  for (let at = 0; at < count; at++) {
    const type = FieldDescriptorProto_Type.BOOL;
    first?.field.push(create(FieldDescriptorProtoSchema, { ...field(`f${at}`, 1000 + at), type }));
  }
}

function addFiles(files: FileDescriptorProto[], like: FileDescriptorProto, count: number): void {
  for (let at = 0; at < count; at++) files.push({ ...like, name: `f${at}.proto` });
}

/** The message M<at>, which holds an M<next>. */
function holder(at: number, next: number) {
  const type = FieldDescriptorProto_Type.MESSAGE;
  const held = { ...field("held", 1), type, typeName: `.acme.printer.v1.M${next}` };
  return create(DescriptorProtoSchema, { name: `M${at}`, field: [held] });
}

function field(name: string, number: number) {
  return { name, jsonName: name, number, label: FieldDescriptorProto_Label.OPTIONAL };
}

describe("readAnnouncements", () => {
  it("leaves a bad service out and keeps the others", () => {
    const read = readAnnouncements([announced(printer), announced(Uint8Array.of(1), "broken")]);
    expect(read.services.map(({ name }) => name)).toEqual(["printer"]);
    expect(read.refused.map(({ name }) => name)).toEqual(["broken"]);
  });

  it("gives a name to the first service that uses it", () => {
    const read = readAnnouncements([announced(printer), announced(printer)]);
    expect(read.tools.map(({ spec }) => spec.name)).toEqual(["printer:print", "printer:paper.get"]);
    expect(read.unavailable).toContainEqual({ tool: "printer:print", why: "another service has this name" });
  });

  it("takes so many services and no more", () => {
    const read = readAnnouncements(Array.from({ length: 40 }, (_, at) => announced(printer, `p${at}`)));
    const most = Math.floor(LIMITS.announced_bytes / printer.length);
    expect(read.services).toHaveLength(most);
    expect(read.refused.map(({ limit }) => limit)).toEqual([
      ...Array.from({ length: LIMITS.announced_refusals }, () => "announced_bytes"),
      "announced_refusals",
    ]);
    const rest = 40 - most - LIMITS.announced_refusals - 1;
    expect(read.refused.at(-1)?.why).toMatch(`it and all ${rest} after it are not read`);
  });
});
