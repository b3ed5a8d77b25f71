import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CallToolRequest, CallToolRequestSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { askH1, askOddly, blamesServer, oddRequests } from "../../lib/server/odd-requests.fixture.ts";
import { callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";

const PATHS = {
  registry: [
    "/reeve.call.v1.CallService/CallTool",
    "/reeve.call.v1.CallService/CallTools",
    "/reeve.tool.v1.ToolService/ListTools",
    "/reeve.enrollment.v1.EnrollmentService/Join",
    "/reeve.device.v1.AttachService/Attach",
    "/reeve.tools.v1.FileSystem/Read",
  ],
  policy: ["/reeve.policy.v1.PolicyService/Exchange", "/reeve.approval.v1.ApprovalService/Approve"],
  device: ["/reeve.device.v1.DeviceAgentService/Link"],
} as const;

let plane: ControlPlane;
beforeAll(async () => {
  plane = await startControlPlane();
});
afterAll(async () => {
  const loud = (line: string) => line.includes('"level":"error"') || /uncaught|unhandled|Warning/.test(line);
  for (const part of Object.values(plane.processes)) expect(part.log.filter(loud)).toEqual([]);
  await plane.close();
});

describe.each(["registry", "policy", "device"] as const)("the %s", (part) => {
  test.each(["a stranger", "the operator"] as const)("blames itself for no odd request of %s", async (who) => {
    const headers: Record<string, string> =
      who === "the operator" ? { authorization: `Bearer ${plane.tokens.operator}` } : {};
    const blamed: unknown[] = [];
    await askOddly(plane.processes[part].url, oddRequests(PATHS[part]), headers, (request, answer) => {
      if (blamesServer(answer)) blamed.push({ ...request, body: Buffer.from(request.body).toString("hex"), answer });
    });
    expect(blamed).toEqual([]);
  });
});

test.each([
  "/invoke",
  "/tools",
  "/calls/x",
  "/calls/",
  "/calls/%",
  "/calls/..",
  "/tools?device=%ff&device=b",
  "//[::1",
])("%s blames only the caller, whatever is sent", async (path) => {
  const authorization = `Bearer ${plane.tokens.operator}`;
  for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"]) {
    for (const text of [
      "",
      "null",
      "[]",
      "{",
      '{"tool":"exec","params":null}',
      '{"tool":"exec","approvalWait":"-1s"}',
      "\u0000",
    ]) {
      const answer = await askH1(plane.registry.url, {
        method,
        path,
        headers: { authorization },
        body: Buffer.from(text),
      });
      expect([method, text, blamesServer(answer), answer]).toEqual([method, text, false, answer]);
    }
  }
});

test("a call in binary with a field that this version does not know, or the key __proto__, is refused", async () => {
  const { registry } = callerOf(plane, plane.tokens.operator);
  const $unknown = [{ no: 900, wireType: 0, data: Uint8Array.of(1) }];
  const good = { callId: "odd", tool: "exec", params: { argv: ["true"] } };
  const params = JSON.parse('{"argv":["true"],"env":{"__proto__":"x"}}') as typeof good.params;
  async function* one(value: CallToolRequest) {
    yield { frames: [{ frame: { case: "call" as const, value } }] };
  }
  const drain = async (call: CallToolRequest) => {
    for await (const _ of registry.callTools(one(call)));
  };
  for (const [call, field] of [
    [Object.assign(create(CallToolRequestSchema, good), { $unknown }), "#900"],
    [create(CallToolRequestSchema, { ...good, params }), "params.env.__proto__"],
  ] as const) {
    for (const send of [() => registry.callTool(call), () => drain(call)]) {
      const error: unknown = await send().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(ConnectError);
      expect(faultDetail(error)?.reason).toBe(ErrorReason.INVALID_INPUT);
      expect(faultDetail(error)?.violations[0]?.field).toMatch(new RegExp(`${field}$`));
    }
  }
  expect((await registry.listCalls({})).calls).toEqual([]);
});
