import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorDetailSchema, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { createLogger, type Level } from "./log.ts";
import { REDACTED, redactSecrets } from "./redact.ts";

function record(level?: Level): { lines: Record<string, unknown>[]; log: ReturnType<typeof createLogger> } {
  const lines: Record<string, unknown>[] = [];
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
  return { lines, log: createLogger({ service: "registry", destination, ...(level && { level }) }) };
}

test("writes one JSON object a line with time, level, service and message", () => {
  const { lines, log } = record();
  log.info({ device: "laptop" }, "hello");
  expect(lines).toEqual([
    {
      level: "info",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      service: "registry",
      device: "laptop",
      msg: "hello",
    },
  ]);
});

test("writes nothing below its level, and nothing at all when silent", () => {
  const { lines, log } = record("warn");
  log.info("no");
  log.warn("yes");
  expect(lines.map((line) => line.msg)).toEqual(["yes"]);
  const silent = record("silent");
  silent.log.error("no");
  expect(silent.lines).toEqual([]);
});

test("never writes the value of a field that is named like a secret", () => {
  const { lines, log } = record();
  log.info(
    {
      authorization: "Bearer x1",
      headers: { Authorization: "Bearer x2", accept: "*/*" },
      deep: { a: { token: "x3" } },
    },
    "in",
  );
  log.child({ token: "x4" }).info("child");
  expect(JSON.stringify(lines)).not.toMatch(/x[1-4]/);
  expect(lines[0]).toMatchObject({ headers: { Authorization: REDACTED, accept: "*/*" } });
});

test("writes an error with its cause", () => {
  const { lines, log } = record();
  log.error({ err: new Error("outer", { cause: new Error("inner") }) }, "failed");
  expect(lines[0]).toMatchObject({
    err: { type: "Error", message: "outer: inner", stack: expect.stringContaining("inner") },
  });
});

test("writes a fault as its sentence, code, reason and metadata, without detail bytes or a stack", () => {
  const { lines, log } = record();
  const thrown = fault(ErrorReason.DEVICE_LOCKED, { device: "d1", token: "x1" }, { message: "the device is locked" });
  const wired = new ConnectError("locked elsewhere", Code.PermissionDenied, { "x-header": "x2" });
  // As it comes over the wire.
  const bytes = toBinary(ErrorDetailSchema, create(ErrorDetailSchema, { reason: ErrorReason.DEVICE_LOCKED }));
  wired.details = [{ type: ErrorDetailSchema.typeName, value: bytes as Uint8Array<ArrayBuffer> }];
  log.child({ part: "p" }).warn({ err: thrown }, "refused");
  log.warn({ err: wired }, "refused");
  log.warn({ err: new AggregateError([thrown], "several") }, "refused");
  const said = {
    type: "ConnectError",
    message: "the device is locked",
    code: "permission_denied",
    reason: "device_locked",
    metadata: { device: "d1", token: REDACTED },
  };
  expect(lines[0]?.err).toEqual(said);
  expect(lines[1]?.err).toEqual({ ...said, message: "locked elsewhere", metadata: {} });
  expect(lines[2]?.err).toMatchObject({ message: "several", aggregateErrors: [said] });
  expect(JSON.stringify(lines)).not.toMatch(/x[12]|"details"|"0":/);
});

test("writes the stack of an error of Connect that is no fault, and what caused a fault", () => {
  const { lines, log } = record();
  log.error({ err: new ConnectError("m".repeat(5000), Code.Internal) }, "failed");
  log.error({ err: fault(ErrorReason.INTERNAL, {}, { message: "no", cause: new Error("inner") }) }, "failed");
  expect(lines[0]?.err).toMatchObject({ code: "internal", stack: expect.stringContaining("log.test") });
  expect(lines[0]?.err).toMatchObject({ message: expect.stringMatching(/^m{1000}…$/) });
  expect(lines[1]?.err).toMatchObject({ reason: "internal", cause: { message: "inner" } });
});

test("redaction leaves what it is given as it was, and gives it back where there is nothing to hide", () => {
  const plain = { a: 1, b: { c: 2 } };
  expect(redactSecrets(plain)).toBe(plain);
  const secret = { b: { token: "t" } };
  expect(redactSecrets(secret)).toEqual({ b: { token: REDACTED } });
  expect(secret.b.token).toBe("t");
});
