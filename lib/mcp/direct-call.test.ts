import { describe, expect, test } from "vitest";
import { directCall } from "./direct-call.ts";

const VERSION = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";
const common = { accept: "application/json, text/event-stream", "content-type": "application/json" };
const modernHeaders = {
  ...common,
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "exec",
};
const legacyHeaders = { ...common, "mcp-protocol-version": "2025-11-25" };
const envelope = { [VERSION]: "2026-07-28", [CAPABILITIES]: {} };
const callOf = (params: object, more: object = {}) =>
  ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "exec", ...params }, ...more }) as never;

test("a plain call of either generation is served as it stands", () => {
  expect(directCall(modernHeaders, callOf({ _meta: { ...envelope, progressToken: "p" } }))).toMatchObject({
    id: 1,
    isModern: true,
    progressToken: "p",
    envelope: { [VERSION]: "2026-07-28" },
  });
  expect(directCall(legacyHeaders, callOf({ arguments: { a: 1 } }))).toMatchObject({
    isModern: false,
    envelope: undefined,
    params: { name: "exec", arguments: { a: 1 } },
  });
});

describe("the SDK answers", () => {
  test.each([
    [{ "mcp-method": "tasks/get" }],
    [{ "mcp-name": "fs_read" }],
    [{ "mcp-name": undefined }],
    [{ "mcp-protocol-version": "2025-11-25" }],
    [{ accept: "application/json" }],
    [{ "content-type": "text/plain" }],
  ])("a call of 2026-07-28 with the headers %j", (headers) => {
    expect(directCall({ ...modernHeaders, ...headers }, callOf({ _meta: envelope }))).toBeUndefined();
  });

  test.each([
    callOf({ _meta: { [VERSION]: "2026-07-28" } }),
    callOf({ _meta: { ...envelope, [VERSION]: "2027-01-01" } }),
    callOf({ _meta: { ...envelope, progressToken: {} } }),
    callOf({ _meta: envelope, arguments: [] }),
    callOf({ _meta: envelope, requestState: 7 }),
    callOf({ _meta: envelope, name: 7 }),
    callOf({ _meta: envelope }, { id: null }),
    callOf({ _meta: envelope }, { method: "tools/list" }),
    [callOf({ _meta: envelope })] as never,
  ])("the message %j", (body) => {
    expect(directCall(modernHeaders, body)).toBeUndefined();
  });

  test("a call of 2025 without a known version, and one that wants a task of then", () => {
    expect(directCall(common, callOf({}))).toBeUndefined();
    expect(directCall({ ...common, "mcp-protocol-version": "2024-11-05" }, callOf({}))).toBeUndefined();
    expect(directCall(legacyHeaders, callOf({ task: { ttl: 1 } }))).toBeUndefined();
  });
});
