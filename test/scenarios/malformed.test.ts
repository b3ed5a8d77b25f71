import { existsSync } from "node:fs";
import { connect } from "node:http2";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type CliResult, runReeve, shellOf } from "../../testkit/cli.ts";
import { callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { MALFORMED, MALFORMED_BODIES, MALFORMED_BYTES, type MalformedArguments } from "./malformed.data.ts";

const CALL_TOOL = "reeve.call.v1.CallService/CallTool";
const REFUSALS = [
  ErrorReason.INVALID_INPUT,
  ErrorReason.INPUT_TOO_LARGE,
  ErrorReason.UNKNOWN_TOOL,
  ErrorReason.UNKNOWN_DEVICE,
];

let plane: ControlPlane;
let mark: string;
beforeAll(async () => {
  plane = await startControlPlane();
  mark = join(plane.work, "mark");
});

// Whatever was sent: every process is alive, nothing ran, and nothing was written down.
afterAll(async () => {
  const caller = callerOf(plane, plane.tokens.operator);
  expect((await caller.registry.listCalls({})).calls).toEqual([]);
  expect(existsSync(mark)).toBe(false);
  const after = await caller.registry.callTool({ tool: "device.ping", params: { text: "alive" } });
  expect(after.call?.status?.output).toEqual({ text: "alive" });
  for (const part of Object.values(plane.processes)) {
    expect(part.log.filter((line) => /uncaught|unhandled/i.test(line))).toEqual([]);
  }
  await plane.close();
});

/** What a face said of a request. */
interface Refused {
  reason: ErrorReason;
  fields: string[];
  message: string;
}

describe("POST /invoke refuses", () => {
  test.each([...MALFORMED, ...MALFORMED_BYTES])("$name", async (row) => {
    expectRefused(await invoke(inBody(row.raw)), row);
  });
  test.each(MALFORMED_BODIES)("$name", async (row) => {
    expectRefused(await invoke(bytesOf(row.raw)), row);
  });
  test("50 MB", async () => {
    const huge = Buffer.concat([Buffer.from('{"tool":"exec","params":{"stdin":"'), Buffer.alloc(50 << 20, "a")]);
    const refused = await invoke(huge);
    expect(refused.reason).toBe(ErrorReason.INPUT_TOO_LARGE);
  });
});

describe("Connect with JSON refuses", () => {
  test.each([...MALFORMED, ...MALFORMED_BYTES])("$name", async (row) => {
    expectRefused(await connectJson(inBody(row.raw)), row);
  });
});

describe("gRPC refuses", () => {
  test.each([
    ["bytes that are no message", Buffer.from("ff".repeat(40), "hex")],
    ["a length that runs past the end", Buffer.from([0x12, 0x7f, 0x61])],
    ["a struct nested 10,000 levels deep", nestedStruct(10_000)],
    ["an unknown tool's name in invalid UTF-8", Buffer.from([0x12, 0x02, 0xc0, 0xaf])],
  ])("%s", async (_, message) => {
    const { status, detail } = await grpc(message);
    expect([3, 5, 8], `grpc-status ${status}`).toContain(status);
    expect(detail?.reason, "a typed reason").toBeOneOf(REFUSALS);
  });
});

describe("the command line refuses", () => {
  const rows = MALFORMED.filter(({ raw }) => typeof raw === "string" && raw.length < 100_000 && raw.startsWith("{"));
  test.each(rows.filter((_, n) => n % 2 === 0))("$name", async (row) => {
    const { code, stderr } = await cli("call", "this", "exec", "--input", text(row.raw));
    expect(code, stderr).toBe(2);
    expect(stderr).toContain("reeve: ");
    if (typeof row.field === "string") expect(stderr).toContain(row.field.replace(/^params\./, ""));
  });
});

function expectRefused(refused: Refused, row: MalformedArguments): void {
  expect(refused.reason, refused.message).toBeOneOf(REFUSALS);
  const matches = refused.fields.some((field) =>
    typeof row.field === "string" ? field === row.field : row.field.test(field),
  );
  expect(matches, `${JSON.stringify(refused.fields)} has to name ${row.field}: ${refused.message}`).toBe(true);
}

function inBody(raw: string | Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from('{"tool":"exec","params":'), bytesOf(raw), Buffer.from("}")]);
}

function bytesOf(raw: string | Uint8Array): Uint8Array {
  return typeof raw === "string" ? Buffer.from(text(raw)) : raw;
}

function text(raw: string | Uint8Array): string {
  return String(raw).replaceAll("MARK", mark);
}

async function invoke(body: Uint8Array): Promise<Refused> {
  const response = await post(`${plane.registry.url}/invoke`, body);
  const error = (await response.json()) as {
    reason: string;
    message: string;
    metadata: Record<string, string>;
    violations?: { field: string }[];
  };
  expect(response.status).toBeOneOf([400, 404, 413]);
  const reason = Object.entries(ErrorReason).find(([name]) => error.reason.toUpperCase().endsWith(name))?.[1];
  const fields = [error.metadata?.field ?? "", ...(error.violations ?? []).map((one) => one.field)];
  return { reason: reason ?? ErrorReason.UNSPECIFIED, fields, message: error.message };
}

async function connectJson(body: Uint8Array): Promise<Refused> {
  const response = await post(`${plane.registry.url}/${CALL_TOOL}`, body);
  expect(response.ok).toBe(false);
  const error = (await response.json()) as { message: string; details?: { type: string; value: string }[] };
  const detail = error.details?.find(({ type }) => type === ErrorDetailSchema.typeName);
  const decoded = detail && fromBinary(ErrorDetailSchema, Buffer.from(detail.value, "base64"));
  return {
    reason: decoded?.reason ?? ErrorReason.UNSPECIFIED,
    fields: [decoded?.metadata.field ?? "", ...(decoded?.violations ?? []).map(({ field }) => field)],
    message: error.message,
  };
}

/** A server may answer and close before a large body has been sent, so the answer is what counts. */
function post(url: string, body: Uint8Array): Promise<Response> {
  const headers = { authorization: `Bearer ${plane.tokens.operator}`, "content-type": "application/json" };
  return fetch(url, { method: "POST", headers, body: new Uint8Array(body) });
}

/** One gRPC call with exactly these bytes as its message. */
async function grpc(message: Uint8Array): Promise<{ status: number; detail: ErrorDetail | undefined }> {
  const session = connect(plane.registry.url);
  try {
    const frame = Buffer.alloc(5 + message.length);
    frame.writeUInt32BE(message.length, 1);
    frame.set(message, 5);
    const stream = session.request({
      ":method": "POST",
      ":path": `/${CALL_TOOL}`,
      "content-type": "application/grpc+proto",
      te: "trailers",
      authorization: `Bearer ${plane.tokens.operator}`,
    });
    const found = Promise.withResolvers<{ status: number; bin: string }>();
    const look = (headers: Record<string, unknown>) => {
      if (headers["grpc-status"] === undefined) return;
      const bin = headers["grpc-status-details-bin"];
      found.resolve({ status: Number(headers["grpc-status"]), bin: typeof bin === "string" ? bin : "" });
    };
    stream.on("response", look);
    stream.on("trailers", look);
    stream.on("error", found.reject);
    stream.resume();
    stream.end(frame);
    const { status, bin } = await found.promise;
    return { status, detail: detailIn(Buffer.from(bin, "base64")) };
  } finally {
    session.close();
  }
}

/** The ErrorDetail inside a google.rpc.Status: field 3 is an Any, whose field 2 holds the bytes. */
function detailIn(status: Buffer): ErrorDetail | undefined {
  const name = Buffer.from(ErrorDetailSchema.typeName);
  const at = status.indexOf(name);
  if (at < 0) return undefined;
  const value = status.subarray(at + name.length);
  if (value[0] !== 0x12) return undefined;
  let length = 0;
  let offset = 1;
  for (let shift = 0; ; shift += 7) {
    const byte = value[offset++] ?? 0;
    length |= (byte & 0x7f) << shift;
    if (byte < 0x80) break;
  }
  return fromBinary(ErrorDetailSchema, value.subarray(offset, offset + length));
}

/** A CallToolRequest whose params are a struct in a struct in a struct. */
function nestedStruct(depth: number): Uint8Array {
  let value: Buffer = Buffer.alloc(0);
  for (let level = 0; level < depth; level++) {
    const struct = field(1, Buffer.concat([field(1, Buffer.from("a")), field(2, field(5, value))]));
    value = struct;
  }
  return Buffer.concat([field(2, Buffer.from("exec")), field(3, value)]);
}

function field(number: number, bytes: Buffer): Buffer {
  const head = [(number << 3) | 2];
  for (let left = bytes.length; ; left >>>= 7) {
    head.push(left > 0x7f ? (left & 0x7f) | 0x80 : left);
    if (left <= 0x7f) break;
  }
  return Buffer.concat([Buffer.from(head), bytes]);
}

function cli(...args: string[]): Promise<CliResult> {
  return runReeve(args, shellOf(plane, plane.tokens.operator, plane.folder));
}
