import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type ExecuteCommand, ExecuteCommandSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { GrantSchema } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { createBatchSigner } from "../../../lib/sign/batch.ts";
import { createBatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { createKeyring } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE, RECEIPT_TYPE } from "../../../lib/sign/payload-types.ts";
import { createTestGrants } from "../testing/grants.ts";
import { CLOCK_SKEW_MS, checkGrant, MAX_GRANT_LIFETIME_MS } from "./check-grant.ts";

const NOW = 1_800_000_000_000;
const audience = {
  deviceId: "dev-0123456789abcdef",
  manifestDigest: sha256Hex("manifest"),
  tools: new Map([
    ["device.ping", { schemaDigest: sha256Hex("ping"), capabilities: ["device.ping"] }],
    ["exec", { schemaDigest: sha256Hex("exec"), capabilities: ["shell.exec", "shell.input"] }],
  ]),
};
const grants = createTestGrants(audience, { now: () => NOW });
const verifier = createBatchVerifier({ keyring: createKeyring([grants.key]), statementType: GRANT_TYPE });
const call = { tool: "device.ping", args: { text: "hello" }, callId: "call-1" };

function check(start: ExecuteCommand, nowMs = NOW) {
  return checkGrant(start, { ...audience, verifier, nowMs });
}

function reasonOf(start: ExecuteCommand, nowMs?: number): ErrorReason | "ok" {
  const result = check(start, nowMs);
  return result.kind === "ok" ? "ok" : result.reason;
}

describe("a grant", () => {
  test("permits the call it was given for", async () => {
    const result = check(await grants.start(call));
    expect(result).toMatchObject({ kind: "ok", value: { text: "hello" }, endsMs: NOW + 59_000 + CLOCK_SKEW_MS });
  });

  test("signed by a key that is not pinned is forged", async () => {
    const forger = createTestGrants(audience, { now: () => NOW });
    expect(reasonOf(await forger.start(call))).toBe(ErrorReason.GRANT_INVALID);
  });

  test("whose statement was changed after signing is forged", async () => {
    const start = await grants.start(call);
    const changed = grants.fields(call, { timeout: durationFromMs(3_600_000) });
    if (start.grant) start.grant.statement = toBinary(GrantSchema, changed);
    expect(reasonOf(start)).toBe(ErrorReason.GRANT_INVALID);
  });

  test("that is missing is invalid", async () => {
    const { callId, tool, arguments: bytes } = await grants.start(call);
    expect(reasonOf(create(ExecuteCommandSchema, { callId, tool, arguments: bytes }))).toBe(ErrorReason.GRANT_INVALID);
  });

  test("that was signed as something else is invalid", async () => {
    const start = await grants.start(call);
    const signer = createBatchSigner({ key: grants.key, statementType: RECEIPT_TYPE });
    start.grant = await signer.sign(toBinary(GrantSchema, grants.fields(call)));
    expect(reasonOf(start)).toBe(ErrorReason.GRANT_INVALID);
  });

  test("that is no message is invalid", async () => {
    const start = await grants.start(call);
    const signer = createBatchSigner({ key: grants.key, statementType: GRANT_TYPE });
    start.grant = await signer.sign(Buffer.from([0xff, 0xff]));
    expect(reasonOf(start)).toBe(ErrorReason.GRANT_INVALID);
  });

  test.each([
    ["another version", { version: 2 }],
    ["no proper id", { grantId: "1" }],
    ["no end", { expireTime: undefined }],
    ["a lifetime over five minutes", { expireTime: timestampFromMs(NOW - 1000 + MAX_GRANT_LIFETIME_MS + 1) }],
    ["an end before its start", { expireTime: timestampFromMs(NOW - 2000) }],
  ])("with %s is invalid", async (_, changes) => {
    expect(reasonOf(await grants.start(call, changes as never))).toBe(ErrorReason.GRANT_INVALID);
  });

  test("for another device is refused", async () => {
    const result = check(await grants.start(call, { deviceId: "dev-ffffffffffffffff" }));
    expect(result).toMatchObject({
      reason: ErrorReason.GRANT_WRONG_DEVICE,
      metadata: { audience: "dev-ffffffffffffffff" },
    });
  });

  test("holds 30 seconds beyond its times on either side, and no longer", async () => {
    const start = await grants.start(call);
    const from = NOW - 1000 - CLOCK_SKEW_MS;
    const until = NOW + 59_000 + CLOCK_SKEW_MS;
    expect(reasonOf(start, from)).toBe("ok");
    expect(reasonOf(start, from - 1)).toBe(ErrorReason.GRANT_EXPIRED);
    expect(reasonOf(start, until - 1)).toBe("ok");
    expect(reasonOf(start, until)).toBe(ErrorReason.GRANT_EXPIRED);
  });

  test("outside its time names its times", async () => {
    const result = check(await grants.start(call), NOW + 600_000);
    expect(result).toMatchObject({
      metadata: { not_before: new Date(NOW - 1000).toISOString(), expires: new Date(NOW + 59_000).toISOString() },
    });
  });

  test("for another tool is refused", async () => {
    const start = await grants.start(call, { tool: "exec" });
    expect(check(start)).toMatchObject({
      reason: ErrorReason.GRANT_WRONG_ARGUMENTS,
      message: "the grant is for another tool",
    });
  });

  test("for a tool that does not exist is refused with those that do", async () => {
    const result = check(await grants.start({ ...call, tool: "fly" }));
    const metadata = { tool: "fly", available: "device.ping, exec" };
    expect(result).toMatchObject({ reason: ErrorReason.UNKNOWN_TOOL, metadata });
  });

  test("for another version of the tool's schema is refused", async () => {
    const start = await grants.start(call, { schemaDigest: sha256Hex("old") });
    expect(reasonOf(start)).toBe(ErrorReason.GRANT_WRONG_ARGUMENTS);
  });

  test("that names fewer capabilities than the tool needs is refused, and one that names more is not", async () => {
    const exec = { ...call, tool: "exec" };
    expect(reasonOf(await grants.start(exec))).toBe("ok");
    for (const capabilities of [[], ["shell.exec"], ["shell.input", "fs.read"]])
      expect(reasonOf(await grants.start(exec, { capabilities }))).toBe(ErrorReason.GRANT_WRONG_ARGUMENTS);
    expect(reasonOf(await grants.start(exec, { capabilities: ["fs.read", "shell.input", "shell.exec"] }))).toBe("ok");
  });

  test("for other arguments is refused", async () => {
    const start = await grants.start(call);
    start.arguments = Buffer.from('{"text":"other"}');
    expect(check(start)).toMatchObject({
      reason: ErrorReason.GRANT_WRONG_ARGUMENTS,
      message: "the grant is for other arguments",
    });
  });

  test("under another manifest is refused", async () => {
    const start = await grants.start(call, { manifestDigest: sha256Hex("old") });
    expect(reasonOf(start)).toBe(ErrorReason.MANIFEST_REFUSED);
  });

  test("of another call is a replay", async () => {
    const start = await grants.start(call, { callId: "call-2", grantId: "ab".repeat(16) });
    expect(check(start)).toMatchObject({ reason: ErrorReason.GRANT_REPLAYED, metadata: { jti: "ab".repeat(16) } });
  });
});

describe("arguments", () => {
  async function startWith(text: string | Uint8Array): Promise<ExecuteCommand> {
    const bytes = Buffer.from(text);
    const start = await grants.start(call, { argsDigest: sha256Hex(bytes) });
    start.arguments = bytes;
    return start;
  }

  test.each([
    ["white space", '{"text": "hello"}'],
    ["keys out of order", '{"b":1,"a":2}'],
    ["a number in another spelling", '{"a":1.0}'],
    ["an escape that is not needed", '{"a":"\\u0062"}'],
    ["a key twice", '{"a":1,"a":1}'],
    ["a key __proto__", '{"__proto__":{}}'],
    ["half a surrogate pair", '{"a":"\\ud800"}'],
    ["no object", '["a"]'],
    ["nothing at all", ""],
    ["bytes that are no UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
    ["too many levels", `{"a":${"[".repeat(40)}${"]".repeat(40)}}`],
  ])("with %s are refused, even where the grant holds their digest", async (_, text) => {
    const reason = reasonOf(await startWith(text));
    expect([ErrorReason.INVALID_INPUT, ErrorReason.INPUT_TOO_LARGE]).toContain(reason);
  });

  test("over 3 MiB are refused before the grant is looked at", async () => {
    const start = create(ExecuteCommandSchema, {
      callId: "call-1",
      tool: "exec",
      arguments: Buffer.alloc(3 * 1024 * 1024 + 1),
    });
    expect(check(start)).toMatchObject({ reason: ErrorReason.INPUT_TOO_LARGE, metadata: { limit: "3145728" } });
  });
});
