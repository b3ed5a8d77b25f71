import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { ErrorDetailSchema, ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { DeviceTools } from "../gen/ts/reeve/tools/v1/device_pb.ts";
import { approvalOf, callHeaders, createReeveTransport, errorOf, reasonOf, withDevice } from "./index.ts";

/** A device.ping that answers with the headers that it was asked with. */
const echo = createRouterTransport((router) => {
  router.service(DeviceTools, {
    ping: (_, { requestHeader }) => ({
      text: [...requestHeader]
        .flatMap(([name, value]) => (name.startsWith("reeve-") ? `${name}=${value}` : []))
        .join(" "),
    }),
  });
});

function refused(reason: ErrorReason, metadata: Record<string, string> = {}): ConnectError {
  const value = create(ErrorDetailSchema, { reason, metadata, violations: [{ field: "argv", message: "too long" }] });
  return new ConnectError("no", Code.FailedPrecondition, undefined, [{ desc: ErrorDetailSchema, value }]);
}

describe("a typed call", () => {
  test("carries its device, id, purpose and wait as headers", async () => {
    const headers = callHeaders({ device: "laptop", callId: "c1", purpose: "to know", waitMs: 0 });
    const { text } = await createClient(DeviceTools, echo).ping({}, { headers });
    expect(text).toBe("reeve-call-id=c1 reeve-device=laptop reeve-purpose=to know reeve-wait-ms=0");
    expect(callHeaders({})).toEqual({});
  });

  test("goes to the transport's device, unless it names another", async () => {
    const client = createClient(DeviceTools, withDevice(withDevice(echo, "outer"), "laptop"));
    expect(await client.ping({})).toMatchObject({ text: "reeve-device=laptop" });
    const headers = callHeaders({ device: "server" });
    expect(await client.ping({}, { headers })).toMatchObject({ text: "reeve-device=server" });
  });
});

describe("an error", () => {
  test("shows its reason, its metadata and the fields", () => {
    const error = refused(ErrorReason.POLICY_DENIED, { rules: "r1" });
    expect(errorOf(error)).toEqual({
      reason: ErrorReason.POLICY_DENIED,
      name: "policy_denied",
      message: "no",
      metadata: { rules: "r1" },
      violations: [{ field: "argv", message: "too long" }],
    });
    expect(approvalOf(error)).toBeUndefined();
  });

  test("shows the approval that a call waits for", () => {
    const error = refused(ErrorReason.APPROVAL_REQUIRED, { approval_id: "a1", call_id: "c1" });
    expect(approvalOf(error)).toEqual({ approvalId: "a1", callId: "c1" });
  });

  test("of another origin has no reason", () => {
    expect(reasonOf(new Error("broken"))).toBe(ErrorReason.UNSPECIFIED);
    expect(errorOf("broken")).toMatchObject({ name: "unspecified", message: "broken" });
  });
});

test("a token does not cross a network in cleartext", () => {
  expect(() => createReeveTransport({ url: "http://10.0.0.1:7400", token: "t" })).toThrow(/loopback/);
  for (const url of ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://reeve.example"]) {
    createReeveTransport({ url, token: "t" }).close();
  }
});
