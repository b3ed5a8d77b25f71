import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import {
  denseMessages,
  HOSTILE_SERVICE,
  hostileDescriptors,
  linkedMessages,
  manyEnumFields,
  messageOf,
  smallDenseMessages,
} from "../../testkit/hostile-services.ts";
import { compileSource, descriptorSetOf } from "../../testkit/printer.ts";
import { type Announced, describeAnnounced } from "./announced.ts";
import { readAnnouncements } from "./announcements.ts";
import { LIMITS, LimitExceeded, type LimitName } from "./limits.ts";
import { measuredFiles } from "./measure.ts";

function announce(descriptorSet: Uint8Array): Announced {
  return describeAnnounced(
    create(AnnouncedToolsSchema, {
      name: "hostile",
      definition: { case: "service", value: { service: HOSTILE_SERVICE, descriptorSet } },
    }),
  );
}

async function announceSource(source: string): Promise<Announced> {
  return announce(await hostileDescriptors(source));
}

describe("a tool that is over a limit is left out before its schema is built", () => {
  it.each<[string, LimitName, string]>([
    ["500 fields of an enum of 2,000 values", "tool_enum_values", manyEnumFields(500, 2000, 8)],
    ["600 messages that hold fifteen others each", "tool_fields", denseMessages()],
    ["30 messages of which each holds all after it", "tool_links", smallDenseMessages()],
    ["a chain of 900 messages", "tool_links", linkedMessages(900, (at) => (at < 899 ? [at + 1] : []))],
    [
      "rules of 100 kB",
      "tool_rule_bytes",
      messageOf(`string s = 1 [(buf.validate.field).string.const = "${"x".repeat(100_000)}"];`),
    ],
    [
      "a long pattern",
      "pattern_size",
      messageOf(`string s = 1 [(buf.validate.field).string.pattern = "${"ab".repeat(600)}"];`),
    ],
    [
      "a pattern of many repetitions, in a list",
      "pattern_size",
      messageOf('repeated string s = 1 [(buf.validate.field).repeated.items.string.pattern = "[^a]{900}[^b]{0,900}"];'),
    ],
  ])("%s", async (_, limit, source) => {
    const { tools, unavailable, built } = await announceSource(source);
    expect(tools).toEqual([]);
    expect(new Set(unavailable.map(({ why }) => why))).toEqual(
      new Set([`over the limit ${limit} of ${LIMITS[limit]}`]),
    );
    expect(built, "nothing was built").toBe(0);
  });
});

it("a schema is given up as it grows over its limit, whatever it would have become", async () => {
  // Under the limit of values, and each value's comment is repeated with each field.
  const comment = "x".repeat(2000);
  const source = manyEnumFields(100, 50, 1).replaceAll(/^V/gm, `// ${comment}\nV`);
  const { unavailable, built } = announce(descriptorSetOf(await compileSource(source)));
  expect(unavailable).toEqual([{ tool: "hostile:r0", why: "over the limit schema_size of 65536" }]);
  expect(built).toBeGreaterThan(LIMITS.schema_size);
  expect(built).toBeLessThan(LIMITS.schema_size + comment.length + 100);
});

it("all tools of a service share one limit of what is built for them", async () => {
  const comment = "x".repeat(30_000);
  const source = manyEnumFields(2, 2, 40).replaceAll(/^E f/gm, `// ${comment}\nE f`);
  const set = descriptorSetOf(await compileSource(source));
  expect(() => announce(set)).toThrow(/over the limit service_schema_size/);
});

it("comments of nothing but spaces and empty lines are read in one pass", async () => {
  const spaces = `A${" ".repeat(200_000)}\n//${"\t".repeat(200_000)}b`;
  const source = messageOf("string s = 1;").replace("message In", `// ${spaces}\nmessage In`);
  const { unavailable, tools } = announce(descriptorSetOf(await compileSource(source)));
  expect([...unavailable, ...tools]).toHaveLength(1);
});

describe("descriptors are measured before they are decoded", () => {
  const nested = (depth: number): Uint8Array => {
    let message: Uint8Array = Uint8Array.of();
    for (let at = 0; at < depth; at++) message = delimited(3, message);
    return delimited(1, delimited(4, message));
  };
  it.each<[string, LimitName, () => Uint8Array]>([
    ["messages", "types", () => delimited(1, repeated(delimited(4, Uint8Array.of()), 2001))],
    ["enum values", "enum_values", () => delimited(1, delimited(5, repeated(delimited(2, Uint8Array.of()), 10_001)))],
    ["fields", "fields", () => delimited(1, delimited(4, repeated(delimited(2, Uint8Array.of()), 10_001)))],
    ["services", "services", () => delimited(1, repeated(delimited(6, Uint8Array.of()), 101))],
    ["RPCs", "rpcs", () => delimited(1, delimited(6, repeated(delimited(2, Uint8Array.of()), 1001)))],
    ["comments", "source_locations", () => delimited(1, delimited(9, repeated(delimited(1, Uint8Array.of()), 20_001)))],
    ["files", "files", () => repeated(delimited(1, Uint8Array.of()), 201)],
    ["imports", "descriptor_parts", () => delimited(1, repeated(delimited(3, Uint8Array.of()), 250_001))],
    [
      "unknown options",
      "descriptor_parts",
      () => delimited(1, delimited(8, repeated(delimited(99, Uint8Array.of()), 250_001))),
    ],
    ["nesting", "nesting", () => nested(40)],
    ["bytes", "descriptor_bytes", () => new Uint8Array(LIMITS.descriptor_bytes + 1)],
  ])("too many %s", (_, limit, bytes) => {
    expect(caught(() => measuredFiles(bytes(), () => false))).toEqual(new LimitExceeded(limit));
    expect(caught(() => announce(bytes()))).toEqual(new LimitExceeded(limit));
  });

  it("bytes that end within a part, and groups without an end", () => {
    expect(() => measuredFiles(Uint8Array.of(0x0a, 5, 1), () => false)).toThrow();
    expect(() => measuredFiles(new Uint8Array(1000).fill(0x0b), () => false)).toThrow();
  });
});

it("a manifest that announces nothing but what is refused is not read to its end", () => {
  const bad = create(AnnouncedToolsSchema, {
    name: "x\u001b[31m",
    definition: { case: "service", value: { service: "a", descriptorSet: Uint8Array.of(1) } },
  });
  let described = 0;
  const { refused } = readAnnouncements(
    Array.from({ length: 5000 }, () => bad),
    (service) => {
      described++;
      return describeAnnounced(service);
    },
  );
  expect(described).toBe(LIMITS.announced_refusals);
  expect(refused).toHaveLength(LIMITS.announced_refusals + 1);
  expect(refused.at(-1)).toMatchObject({ name: "x", limit: "announced_refusals" });
});

function caught(job: () => unknown): unknown {
  try {
    return job();
  } catch (error: unknown) {
    return error;
  }
}

/** A field that holds bytes, as protobuf writes it. */
function delimited(number: number, content: Uint8Array): Uint8Array {
  return Uint8Array.from([...varint(number * 8 + 2), ...varint(content.length), ...content]);
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

function repeated(part: Uint8Array, count: number): Uint8Array {
  const all = new Uint8Array(part.length * count);
  for (let at = 0; at < count; at++) all.set(part, at * part.length);
  return all;
}
