import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ManifestSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { fault, faultDetail } from "../../lib/fault/fault.ts";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { descriptorSetOf, type Printer, startPrinter } from "../../testkit/printer.ts";
import { deviceClient } from "./one-gate.ways.ts";

/** What an owner adds to the policy for a service of their own, as the device agent's README shows it. */
const RULES = `
  - id: printer/look
    effect: allow
    tools: ["printer:paper.get"]
    message: Looking at the paper changes nothing.
    match:
      - { tool: { name: "printer:paper.get", read_only: true } }

  - id: printer/print
    effect: hold
    tools: ["printer:print"]
    when: '"agent" in principal.roles'
    message: Paper is dear; a person has to look at it first.
    match:
      - { tool: { name: "printer:print" }, args: { text: x } }

  - id: printer/operator
    effect: allow
    tools: ["printer:*"]
    when: '"operator" in principal.roles'
    message: Operators may print.
    match:
      - { tool: { name: "printer:print" }, args: { text: x }, principal: { roles: [operator] } }
`;

let printer: Printer;
let policyFolder: string;
let plane: ControlPlane;
let operator: Caller;
let agent: Caller;
let callId: string;

beforeAll(async () => {
  printer = await startPrinter();
  policyFolder = await mkdtemp(join(tmpdir(), "reeve-test-"));
  const policyFile = join(policyFolder, "policy.yaml");
  await writeFile(policyFile, (await readFile(DEFAULT_POLICY_FILE, "utf8")) + RULES);
  plane = await startControlPlane({ policyFile, env: { REEVE_DEVICE_SERVICES: `printer=${printer.url}` } });
  operator = callerOf(plane, plane.tokens.operator);
  agent = callerOf(plane, plane.tokens.agent);
});
afterAll(async () => {
  await plane.close();
  await printer.close();
  await rm(policyFolder, { recursive: true });
});
beforeEach(() => {
  callId = `announced-${randomBytes(6).toString("hex")}`;
  printer.printed.length = 0;
  printer.fail = undefined;
});

async function print(caller: Caller, params: { text: string; copies?: number }): Promise<CompleteCall> {
  const { call } = await caller.registry.callTool({ tool: "printer:print", params, callId, noWait: caller === agent });
  if (call === undefined) throw new Error("no call");
  return completeCall(call);
}

describe("a service that a device announces", () => {
  test("is listed with a schema that was derived from its descriptors", async () => {
    const { tools } = await agent.registry.listTools({});
    const tool = tools.find(({ name }) => name === "printer:print");
    expect(tool).toMatchObject({
      description: "Print a text on paper.",
      capabilities: ["printer:print"],
      method: "acme.printer.v1.Printer/Print",
      annotations: { readOnly: false, destructive: true },
      inputSchema: { properties: { copies: { maximum: 5 } }, required: ["text"] },
    });
    expect(tools.map(({ name }) => name)).not.toContain("printer:pages.watch");
    const { device } = await agent.registry.getDevice({ device: "this" });
    expect(device?.unavailable).toContainEqual(
      expect.objectContaining({ tool: "printer:pages.watch", why: expect.stringContaining("stream") as string }),
    );
  });

  test("stands in the device's signed manifest", async () => {
    const { manifest } = await deviceClient(plane, plane.tokens.auditor).getManifest({});
    const { announced } = fromBinary(ManifestSchema, manifest?.payload ?? new Uint8Array());
    expect(
      announced.map(({ name, definition }) => [name, definition.case === "service" && definition.value.service]),
    ).toEqual([["printer", "acme.printer.v1.Printer"]]);
  });

  test("is called where policy permits it, and its answer is the output", async () => {
    const call = await print(operator, { text: "hello", copies: 2 });
    expect(call).toMatchObject({
      status: { state: CallState.SUCCEEDED, output: { pages: 2, printTime: "2027-01-15T08:00:00Z" } },
    });
    expect(call.status.receipt).toBeDefined();
    expect(printer.printed).toEqual([{ text: "hello", copies: 2 }]);
  });

  test("waits for a human where policy says so", async () => {
    expect(await print(agent, { text: "please" })).toMatchObject({ status: { state: CallState.HELD } });
    expect(printer.printed).toEqual([]);
    await approveCall(operator, callId);
    await eventually(() => expect(printer.printed).toEqual([{ text: "please", copies: 0 }]));
  });

  test("is not called with what its rules refuse: the field is named", async () => {
    const error: unknown = await print(operator, { text: "", copies: 6 }).catch((thrown: unknown) => thrown);
    expect(ConnectError.from(error).code).toBe(Code.InvalidArgument);
    expect(faultDetail(error)?.violations.map(({ field }) => field)).toEqual(["params.text", "params.copies"]);
    expect(printer.printed).toEqual([]);
  });

  test("fails the call with its own code and cleaned words", async () => {
    printer.fail = () => fault(ErrorReason.RATE_LIMITED, {}, { message: "out of paper\u001b[31m" });
    const call = await print(operator, { text: "hello" });
    expect(call).toMatchObject({
      status: {
        state: CallState.FAILED,
        error: {
          reason: ErrorReason.TOOL_FAILED,
          metadata: { service: "acme.printer.v1.Printer", code: "resource_exhausted" },
        },
        errorMessage: "acme.printer.v1.Printer answered resource_exhausted: out of paper",
      },
    });
  });

  test("learns when a call is canceled", async () => {
    const call = print(operator, { text: "forever" });
    await eventually(() => expect(printer.printed).toHaveLength(1));
    await operator.registry.cancelCall({ callId });
    expect(await call).toMatchObject({ status: { state: CallState.CANCELED } });
    await printer.gaveUp;
  });

  test("is a tool of the command line, with flags from its schema", async () => {
    const shell = shellOf(plane, plane.tokens.operator, tmpdir());
    expect((await runReeve(["tool", "list"], shell)).stdout).toContain("printer:print");
    const help = await runReeve(["call", "this", "printer:print", "--help"], shell);
    expect(help.stdout).toContain("--copies");
    const called = await runReeve(["call", "this", "printer:print", "--text", "hi", "--copies", "3"], shell);
    expect(called.code, called.stderr).toBe(0);
    expect(printer.printed).toEqual([{ text: "hi", copies: 3 }]);
  });
});

describe("where no rule speaks of it", () => {
  let other: ControlPlane;
  beforeAll(async () => {
    // This time from a file, while the service is asked for nothing.
    const file = join(plane.folder, "printer.binpb");
    await writeFile(file, descriptorSetOf(printer.registry));
    const services = `printer=${printer.url},offline=http://127.0.0.1:1`;
    const env = { REEVE_DEVICE_SERVICES: services, REEVE_DEVICE_SERVICES_DESCRIPTORS: `printer=${file}` };
    other = await startControlPlane({ env });
  });
  afterAll(() => other.close());

  test.each(["operator", "agent"] as const)("the %s is denied, also where it says that it only reads", async (who) => {
    const caller = callerOf(other, other.tokens[who]);
    for (const tool of ["printer:print", "printer:paper.get"]) {
      const params = tool === "printer:print" ? { text: "x" } : {};
      const { call } = await caller.registry.callTool({ tool, params });
      expect(call).toMatchObject({ status: { state: CallState.DENIED, error: { reason: ErrorReason.POLICY_DENIED } } });
    }
    expect(printer.printed).toEqual([]);
  });

  test("a service that is not there is listed as unavailable, with why", async () => {
    const { device } = await callerOf(other, other.tokens.agent).registry.getDevice({ device: "this" });
    expect(device?.unavailable).toContainEqual(
      expect.objectContaining({ tool: "offline", why: expect.stringContaining("server reflection") as string }),
    );
    expect(device?.tools).toContain("printer:print");
  });
});
