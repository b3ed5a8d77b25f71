import { create, type DescMessage, fromBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CallToolRequestSchema,
  CallToolsRequestSchema,
  CallToolsResponseSchema,
} from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ExecRequestSchema } from "../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { assertNothingStrange } from "./strange-fields.ts";

/** Bytes within fields, the innermost last. */
function within(bytes: Uint8Array, ...fields: number[]): Uint8Array {
  return fields.reduceRight(
    (held, field) => new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(held).finish(),
    bytes,
  );
}

/** Field 900, which nothing here has. */
const UNKNOWN = new BinaryWriter().tag(900, WireType.Varint).uint32(1).finish();

/** An entry of a map with the key `__proto__`. */
const PROTO = new BinaryWriter().tag(1, WireType.LengthDelimited).string("__proto__").finish();

function found(desc: DescMessage, bytes: Uint8Array): unknown {
  try {
    assertNothingStrange(desc, fromBinary(desc, bytes));
  } catch (error: unknown) {
    const detail = faultDetail(error);
    return [detail?.violations[0]?.field, detail?.metadata.rule];
  }
  return undefined;
}

test.each([
  ["at the top", ExecRequestSchema, UNKNOWN, "#900"],
  ["in a list in a oneof", CallToolsResponseSchema, within(UNKNOWN, 1, 2, 3, 7), "events[0].call.status.error.#900"],
  ["in the value of a map", StructSchema, within(UNKNOWN, 1, 2), 'fields[""].#900'],
] as const)("a field that this version does not know is named: %s", (_, desc, bytes, path) => {
  expect(found(desc, bytes)).toEqual([path, "unknown_field"]);
});

test("the key __proto__ is named in a map and in a Struct", () => {
  const env = ExecRequestSchema.fields.find(({ localName }) => localName === "env");
  expect(found(ExecRequestSchema, within(PROTO, env?.number ?? 0))).toEqual(['env["__proto__"]', "reserved_key"]);
  const params = CallToolRequestSchema.fields.find(({ localName }) => localName === "params");
  expect(found(CallToolRequestSchema, within(PROTO, params?.number ?? 0, 1))).toEqual([
    "params.__proto__",
    "reserved_key",
  ]);
  // params.fields[""].struct_value.fields["__proto__"]
  const deep = within(PROTO, params?.number ?? 0, 1, 2, 5, 1);
  expect(found(CallToolRequestSchema, deep)).toEqual(['params[""].__proto__', "reserved_key"]);
});

test("what is known is let through", () => {
  const exec = create(ExecRequestSchema, { argv: ["a"], env: { A: "1" } });
  expect(() => assertNothingStrange(ExecRequestSchema, exec)).not.toThrow();
  const params = { argv: ["a", "b"], env: { A: "1" }, deep: [{ a: null }, 1, true] };
  const frames = [{ frame: { case: "call" as const, value: { tool: "exec", params } } }];
  const batch = create(CallToolsRequestSchema, { frames });
  expect(() => assertNothingStrange(CallToolsRequestSchema, batch)).not.toThrow();
});

describe("over a connection", () => {
  let echo: EchoServer;
  beforeAll(async () => {
    echo = await startEcho();
  });
  afterAll(() => echo.server.close(0));

  const say = async (body: Uint8Array) => {
    const headers = { authorization: "Bearer agent-token", "content-type": "application/proto" };
    const answer = await fetch(`${echo.url}/reeve.test.v1.Echo/Say`, {
      method: "POST",
      headers,
      body: Buffer.from(body),
    });
    return [answer.status, answer.status === 200 ? "" : await answer.text()];
  };

  test("binary is refused as JSON is", async () => {
    expect(await say(within(UNKNOWN, 4))).toEqual([400, expect.stringContaining("inner.#900")]);
    expect(await say(within(PROTO, 6))).toEqual([400, expect.stringContaining("__proto__")]);
    expect((await say(new Uint8Array()))[0]).toBe(200);
  });
});
