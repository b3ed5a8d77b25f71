import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { Ingress } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { DeviceTools } from "../../gen/ts/reeve/tools/v1/device_pb.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { callerOf } from "../../testkit/clients.ts";
import { startAndWatch } from "../../testkit/fan-outs.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

const DEFAULT_POLICY_FILE = join(import.meta.dirname, "../../services/policy/rules/default-policy.yaml");

/** An owner's rule about each way in. An agent that says it is something else must not get past it. */
const RULES = `
  - id: by-http
    effect: deny
    when: 'ingress == "http"'
    message: No caller may come in by HTTP.
  - id: by-model
    effect: deny
    when: 'ingress == "llm"'
    message: No model may call anything.
`;

let folder: string;
let plane: TestStack;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-ingress-"));
  const policyFile = join(folder, "policy.yaml");
  await writeFile(policyFile, (await readFile(DEFAULT_POLICY_FILE, "utf8")) + RULES);
  plane = await startTestStack({ policyFile });
});

afterAll(async () => {
  await plane.close();
  await rm(folder, { recursive: true, force: true });
});

type Who = "operator" | "agent";

const as = (who: Who) => callerOf(plane, plane.tokens[who]);
const CLAIM = { client: "cli" };

/** Whether a ping runs that comes in by a face, with the claim of being the command line. */
const FACES: Record<string, (who: Who) => Promise<boolean>> = {
  async CallTool(who) {
    const { call } = await as(who).registry.callTool({ tool: "device.ping", ...CLAIM });
    return call?.status?.state === CallState.SUCCEEDED;
  },
  async CallTools(who) {
    const call = { tool: "device.ping", callId: `stream-${who}`, ...CLAIM };
    const requests = (async function* () {
      yield { frames: [{ frame: { case: "call" as const, value: call } }] };
    })();
    let state: CallState | undefined;
    for await (const { events } of as(who).registry.callTools(requests)) {
      for (const { event } of events) if (event.case === "call") state = event.value.status?.state;
    }
    return state === CallState.SUCCEEDED;
  },
  "POST /invoke": async (who) => (await invoke(who, { tool: "device.ping", client: "cli" })) === 200,
  async "the tool's own RPC"(who) {
    const transport = createServiceTransport({ baseUrl: plane.registry.url, token: plane.tokens[who] });
    const headers = { "reeve-client": "cli" };
    return succeeds(createClient(DeviceTools, transport).ping({}, { headers }));
  },
  async FanOut(who) {
    const request = { devices: ["this"], tool: "device.ping", ...CLAIM };
    let succeeded = false;
    for await (const { event } of startAndWatch(as(who).fanOut, request)) {
      if (event.case === "summary") succeeded = event.value.succeeded;
    }
    return succeeded;
  },
};

async function invoke(who: Who, body: object): Promise<number> {
  const headers = { "content-type": "application/json", authorization: `Bearer ${plane.tokens[who]}` };
  const response = await fetch(`${plane.registry.url}/invoke`, { method: "POST", headers, body: JSON.stringify(body) });
  await response.body?.cancel();
  return response.status;
}

async function succeeds(call: Promise<unknown>): Promise<boolean> {
  return call.then(
    () => true,
    () => false,
  );
}

describe("a rule about how a call comes in", () => {
  test.each(Object.keys(FACES))("holds an agent that says it is the command line: %s", async (face) => {
    expect(await FACES[face]?.("agent").catch(() => false)).toBe(false);
  });

  test.each(Object.entries({ CallTool: true, CallTools: true, "POST /invoke": false, FanOut: true }))(
    "goes by the face, whatever an operator says: %s",
    async (face, runs) => {
      expect(await FACES[face]?.("operator")).toBe(runs);
    },
  );
});

test("what a caller says of itself is shown, and does not make two calls different", async () => {
  const { registry } = as("operator");
  const ping = { tool: "device.ping", callId: "claimed" };
  const { call } = await registry.callTool({ ...ping, client: "llm" });
  expect(call).toMatchObject({ spec: { ingress: Ingress.RPC, client: "llm" }, status: { state: CallState.SUCCEEDED } });
  const { call: again } = await registry.callTool({ ...ping, client: "another program" });
  expect(again).toMatchObject({
    spec: { client: "llm" },
    status: { state: CallState.SUCCEEDED, grantId: call?.status?.grantId },
  });
});

test("what a caller says of itself is bounded", async () => {
  for (const client of ["a".repeat(65), "line\nline", "\u001b[2J"]) {
    await expect(as("operator").registry.callTool({ tool: "device.ping", client })).rejects.toThrow(/client/);
  }
});
