import { existsSync, globSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { Command } from "commander";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { processContext } from "../../cli/command-context.ts";
import { commandList } from "../../cli/command-list.ts";
import { ServerReflection } from "../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { AuditRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { ExecuteCommand } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ManifestSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { ExecutionOutcome, type Receipt, ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { createBatchSigner } from "../../lib/sign/batch.ts";
import { createBatchVerifier } from "../../lib/sign/batch-verifier.ts";
import { createKeyring, generateSigningKey, verifyKeyFromRaw } from "../../lib/sign/keys.ts";
import { BUILT_IN_SERVICES } from "../../lib/toolschema/built-in.ts";
import { blankComments } from "../../scripts/import-directions/imports.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type AskedCall, askPolicy, startOf } from "../../testkit/policy-grant.ts";
import {
  COMMANDS,
  type Entry,
  HTTP_PATHS,
  PASSAGES,
  RPCS,
  TOOL_PACKAGE,
  TOOL_RPCS,
  type WayName,
} from "./one-gate.data.ts";
import { RUN_WAYS } from "./one-gate.runs.ts";
import { chatOnce, DEVICE_WAYS, deviceClient, GATE_WAYS, MODEL_WAYS, SCHEDULE_WAYS } from "./one-gate.ways.ts";

/** The product's own code: no tests, and nothing that only tests use. */
const PRODUCT = globSync("{lib,services,cli}/**/*.ts", { cwd: repositoryRoot })
  .filter((path) => !/\.(test|testdata|fixture)\.ts$|\/(testing|testdata)\//.test(path))
  .toSorted();

const sources = new Map<string, string>();
beforeAll(async () => {
  for (const path of PRODUCT) sources.set(path, blankComments(await readFile(join(repositoryRoot, path), "utf8")));
});

describe("everything that can be called is known, and whether it runs a tool:", () => {
  test("every RPC", async () => {
    const services = await generatedServices();
    const methods = services
      .filter(({ file }) => file.proto.package !== TOOL_PACKAGE)
      .flatMap(({ typeName, methods: rpcs }) => rpcs.map(({ name }) => `${typeName}/${name}`));
    expectClassified(methods, RPCS);
  });

  test("every plain HTTP path", () => {
    const answering = [...sources.values()].filter((text) => text.includes('/plain-http.ts"'));
    const paths = answering.flatMap((text) =>
      [...text.matchAll(/\bpath(?: === |: |\.startsWith\()"(\/[^"]*)"/g)].map(([, path = ""]) => path),
    );
    expectClassified(paths, HTTP_PATHS);
  });

  test("every command", async () => {
    expectClassified(await commandNames(), COMMANDS);
  });

  test("every way that runs a tool is gone by these tests", () => {
    const gone = new Set<WayName>([
      "ApprovalService/Approve",
      ...[...GATE_WAYS, ...MODEL_WAYS, ...SCHEDULE_WAYS, ...RUN_WAYS, ...DEVICE_WAYS].map(({ name }) => name),
    ]);
    const known = [RPCS, { TOOL_RPCS }, HTTP_PATHS, COMMANDS].flatMap((entries) =>
      Object.values<Entry>(entries).flatMap(wayOf),
    );
    expect(new Set(known)).toEqual(gone);
  });

  test("the compiled services of the tools are those that the catalog is made from", async () => {
    const tools = (await generatedServices()).filter(({ file }) => file.proto.package === TOOL_PACKAGE);
    const names = tools.map(({ typeName }) => typeName).toSorted();
    expect(names).toEqual(BUILT_IN_SERVICES.map(({ typeName }) => typeName).toSorted());
  });
});

describe("in the code, one narrow place follows another:", () => {
  test.each(PASSAGES)("$what", ({ words, only }) => {
    const found = PRODUCT.filter((path) => words.test(sources.get(path) ?? ""));
    expect(found.length).toBeGreaterThan(0);
    expect(
      found.filter((path) => !only.some((place) => path === place || (place.endsWith("/") && path.startsWith(place)))),
    ).toEqual([]);
  });
});

let plane: ControlPlane;
let operator: Caller;
/** For each test: a file that a call would make, and the call's id. */
let mark: string;
let callId: string;
let count = 0;
beforeAll(async () => {
  plane = await startControlPlane();
  operator = callerOf(plane, plane.tokens.operator);
  await writeFile(join(plane.work, ".env"), "PASSWORD=hunter2\n");
});
afterAll(() => plane.close());
beforeEach(() => {
  count += 1;
  callId = `gate-${count}`;
  mark = join(plane.work, callId);
});

describe("a tool's own RPC is served by the registry alone:", () => {
  const touch = (part: "registry" | "policy" | "device", token?: string) =>
    fetch(`${plane.processes[part].url}/${TOOL_PACKAGE}.Shell/Exec`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify({ argv: ["touch", mark] }),
    });
  const toolServicesAt = async (part: "registry" | "policy" | "device") => {
    const listed = await servicesAt(plane.processes[part].url);
    expect(listed).toContain("grpc.health.v1.Health");
    return listed.filter((name) => name.startsWith(TOOL_PACKAGE));
  };

  test.each(["policy", "device"] as const)("not by the %s", async (part) => {
    expect(await toolServicesAt(part)).toEqual([]);
    expect((await touch(part, plane.tokens.service)).status).toBe(404);
    expect(existsSync(mark)).toBe(false);
  });

  test("the registry lists every one of them", async () => {
    expect(await toolServicesAt("registry")).toEqual(BUILT_IN_SERVICES.map(({ typeName }) => typeName).toSorted());
  });

  test.each([
    ["nobody in particular", undefined, 401],
    ["the auditor", "auditor", 403],
    ["another service", "service", 403],
  ] as const)("which runs nothing for %s", async (_, who, status) => {
    expect((await touch("registry", who && plane.tokens[who])).status).toBe(status);
    expect(existsSync(mark)).toBe(false);
  });
});

describe.each(GATE_WAYS)("$name", ({ call }) => {
  test("runs what is permitted, on record", async () => {
    const reported = await call(plane, { as: "operator", tool: "exec", params: { argv: ["touch", mark] }, callId });
    expect(existsSync(mark)).toBe(true);
    const [decided, outcome, ...more] = await recordsOf(reported.callId, 2);
    expect(decided?.event).toMatchObject({ case: "decided", value: { decision: DecisionKind.PERMIT, tool: "exec" } });
    expect(outcome?.event).toMatchObject({ case: "outcome", value: { state: CallState.SUCCEEDED, tool: "exec" } });
    expect(more).toEqual([]);
    expect(await receiptOf(reported.callId)).toMatchObject({
      grantId: grantIn(decided),
      outcome: ExecutionOutcome.SUCCEEDED,
    });
  });
});

describe.each([...MODEL_WAYS, ...SCHEDULE_WAYS, ...RUN_WAYS])("$name", ({ call, only }) => {
  test("runs what is permitted, on record", async () => {
    await writeFile(mark, "what is in the file");
    const reported = await call(plane, { as: "agent", tool: "fs.read", params: { path: mark }, callId });
    expect(reported.text).toContain("what is in the file");
    const [decided, outcome, ...more] = await recordsOf(reported.callId, 2);
    expect(decided?.event).toMatchObject({
      case: "decided",
      value: { decision: DecisionKind.PERMIT, tool: "fs.read" },
    });
    expect(outcome?.event).toMatchObject({ case: "outcome", value: { state: CallState.SUCCEEDED, tool: "fs.read" } });
    expect(more).toEqual([]);
    expect(await receiptOf(reported.callId)).toMatchObject({ grantId: grantIn(decided) });
  });

  test.each(["agent", only ?? "operator"] as const)(
    "runs what is held once a person has approved it: %s",
    async (as) => {
      const using = call(plane, { as, tool: "exec", params: { argv: ["touch", mark] }, callId });
      const held = await eventually(async () => {
        const { approvals } = await operator.approvals.listApprovals({ state: ApprovalState.PENDING });
        const found = approvals.find(({ spec }) => JSON.stringify(spec?.arguments).includes(mark));
        return found?.spec ?? Promise.reject(new Error("it is not held"));
      });
      await expectNeverSent(held.callId);
      expect(existsSync(mark)).toBe(false);
      await approveCall(operator, held.callId);
      expect((await using).callId).toBe(held.callId);
      const records = await recordsOf(held.callId, 4);
      expect(records.map(({ event }) => event)).toMatchObject([
        { case: "decided", value: { decision: DecisionKind.HOLD } },
        { case: "approvalDecided", value: { state: ApprovalState.APPROVED } },
        { case: "decided", value: { decision: DecisionKind.PERMIT } },
        { case: "outcome", value: { state: CallState.SUCCEEDED } },
      ]);
      expect(existsSync(mark)).toBe(true);
    },
  );
});

describe.each([...GATE_WAYS, ...MODEL_WAYS, ...SCHEDULE_WAYS, ...RUN_WAYS])("$name", ({ call }) => {
  test("leaves nothing of what is blocked but the record", async () => {
    const params = { command: `touch ${mark}; rm -rf /` };
    const reported = await call(plane, { as: "operator", tool: "shell.eval", params, callId });
    expect(existsSync(mark)).toBe(false);
    await expectNeverSent(reported.callId);
    const records = await recordsOf(reported.callId, 1);
    const denial = { decision: DecisionKind.DENIAL, reason: ErrorReason.POLICY_BLOCKED, grantId: "" };
    expect(records.map(({ event }) => event)).toMatchObject([{ case: "decided", value: denial }]);
  });

  test("leaves nothing of what is denied but the record", async () => {
    const params = { path: join(plane.work, ".env") };
    const reported = await call(plane, { as: "agent", tool: "fs.read", params, callId });
    expect(reported.text).not.toContain("hunter2");
    const id = await storedId(reported.callId);
    await expectNeverSent(id);
    const records = await recordsOf(id, 1);
    const denial = { decision: DecisionKind.DENIAL, reason: ErrorReason.POLICY_DENIED, grantId: "" };
    expect(records.map(({ event }) => event)).toMatchObject([{ case: "decided", value: denial }]);
  });
});

describe("reeve chat's model", () => {
  test("is an agent, whatever it learns: what an operator may run is held", async () => {
    const params = { argv: ["touch", mark] };
    const { stdout } = await chatOnce(plane, plane.tokens.agent, { tool: "exec", params });
    const [call] = (JSON.parse(stdout) as { calls: { callId?: string }[] }).calls;
    const reported = await operator.registry.getCall({ callId: call?.callId ?? "" });
    expect(reported.call).toMatchObject({
      spec: { ingress: Ingress.LLM, client: "agent" },
      status: { state: CallState.HELD },
    });
    await expectNeverSent(call?.callId ?? "");
    expect(existsSync(mark)).toBe(false);
  });

  test("is never an operator unknowingly: nothing is sent to the model or the gate", async () => {
    const params = { argv: ["touch", mark] };
    const { code, stderr, seen } = await chatOnce(plane, plane.tokens.operator, { tool: "exec", params });
    expect([code, seen]).toEqual([2, "[]"]);
    expect(stderr).toContain("REEVE_AGENT_TOKEN");
    expect(existsSync(mark)).toBe(false);
  });
});

describe("ApprovalService/Approve", () => {
  test("runs what was held, and only then, on record", async () => {
    const { registry } = callerOf(plane, plane.tokens.agent);
    await registry.callTool({ tool: "exec", params: { argv: ["touch", mark] }, callId, noWait: true });
    const id = await storedId(callId);
    await expectNeverSent(id);
    expect(existsSync(mark)).toBe(false);
    await approveCall(operator, id);
    const records = await recordsOf(id, 4);
    expect(records.map(({ event }) => event)).toMatchObject([
      { case: "decided", value: { decision: DecisionKind.HOLD } },
      { case: "approvalDecided", value: { state: ApprovalState.APPROVED } },
      { case: "decided", value: { decision: DecisionKind.PERMIT } },
      { case: "outcome", value: { state: CallState.SUCCEEDED } },
    ]);
    expect(existsSync(mark)).toBe(true);
  });
});

describe.each(DEVICE_WAYS)("$name", ({ start }) => {
  const asService = () => deviceClient(plane, plane.tokens.service);
  const touch = (): AskedCall => ({ callId, tool: "exec", params: { argv: ["touch", mark] }, role: Role.OPERATOR });

  test("runs what policy has granted, on policy's record and in the device's ledger", async () => {
    const request = touch();
    const finished = await start(asService(), startOf(request, await askPolicy(plane, request)));
    expect(finished.outcome).toBe(ExecutionOutcome.SUCCEEDED);
    expect(existsSync(mark)).toBe(true);
    const [decided] = await recordsOf(callId, 1);
    expect(decided?.event).toMatchObject({ case: "decided", value: { decision: DecisionKind.PERMIT, tool: "exec" } });
    expect(await receiptOf(callId)).toMatchObject({ grantId: grantIn(decided), outcome: ExecutionOutcome.SUCCEEDED });
  });

  test.each([
    [
      "blocked",
      ErrorReason.POLICY_BLOCKED,
      () => ({ tool: "shell.eval", params: { command: `touch ${mark}; rm -rf /` } }),
    ],
    [
      "denied",
      ErrorReason.POLICY_DENIED,
      () => ({ tool: "exec", params: { argv: ["touch", mark] }, role: Role.AUDITOR }),
    ],
  ])("gets no grant for what is %s, and runs nothing without one", async (_, reason, what) => {
    const request: AskedCall = { ...touch(), ...what() };
    const decision = await askPolicy(plane, request);
    expect(decision.outcome).toMatchObject({ case: "denial", value: { reason } });
    const [decided] = await recordsOf(callId, 1);
    expect(decided?.event).toMatchObject({
      case: "decided",
      value: { decision: DecisionKind.DENIAL, reason, grantId: "" },
    });
    await expectRefused(startOf(request, decision), [ErrorReason.INVALID_INPUT, ErrorReason.GRANT_INVALID]);
  });

  test("runs nothing with a forged grant", async () => {
    const request = touch();
    const granted = startOf(request, await askPolicy(plane, request));
    const grant = fromBinary(GrantSchema, granted.grant?.statement ?? new Uint8Array());
    const forger = createBatchSigner({ key: generateSigningKey(), statementType: "application/vnd.reeve.grant.v1" });
    const forged = await forger.sign(toBinary(GrantSchema, grant));
    await expectRefused({ ...granted, grant: forged }, [ErrorReason.GRANT_INVALID]);
  });

  test("runs nothing with a grant for other arguments", async () => {
    const request = touch();
    const granted = startOf(request, await askPolicy(plane, { ...request, params: { argv: ["uname"] } }));
    await expectRefused(granted, [ErrorReason.GRANT_WRONG_ARGUMENTS]);
  });

  test.each(["operator", "agent", "auditor"] as const)("is no way for the %s", async (who) => {
    const request = touch();
    const granted = startOf(request, await askPolicy(plane, request));
    expect(await start(deviceClient(plane, plane.tokens[who]), granted).catch(reasonOf)).toBe(
      ErrorReason.ROLE_REQUIRED,
    );
    await expectNothingRan();
  });

  async function expectRefused(wanted: ExecuteCommand, reasons: readonly ErrorReason[]): Promise<void> {
    const refused = await start(asService(), wanted).then(
      ({ outcome, error }) => (outcome === ExecutionOutcome.REFUSED ? error?.reason : undefined),
      reasonOf,
    );
    expect(reasons).toContain(refused);
    await expectNothingRan();
  }

  async function expectNothingRan(): Promise<void> {
    await expectNeverSent(callId);
    expect(existsSync(mark)).toBe(false);
  }
});

function expectClassified(names: readonly string[], entries: Readonly<Record<string, Entry>>): void {
  expect(new Set(names), "what there is, and what one-gate.data.ts says of it").toEqual(new Set(Object.keys(entries)));
}

function wayOf(entry: Entry): WayName[] {
  return "runsBy" in entry ? [entry.runsBy].flat() : [];
}

/** Every service of Reeve that the generated code holds. */
async function generatedServices(): Promise<DescService[]> {
  const files = globSync("gen/ts/reeve/**/*_pb.ts", { cwd: repositoryRoot });
  const modules = await Promise.all(files.map((path): Promise<object> => import(join(repositoryRoot, path))));
  return modules.flatMap((module) => Object.values(module)).filter(isService);
}

function isService(value: unknown): value is DescService {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "service";
}

async function commandNames(): Promise<string[]> {
  const root = new Command().enablePositionalOptions();
  const context = processContext();
  const registered = new Set<unknown>();
  for (const { load } of commandList) {
    const register = await load();
    if (!registered.has(register)) register(root, context);
    registered.add(register);
  }
  const namesUnder = (command: Command, path: readonly string[]): string[] =>
    command.commands.flatMap((one) => {
      const name = [...path, one.name()];
      return [name.join(" "), ...namesUnder(one, name)];
    });
  return namesUnder(root, []);
}

async function servicesAt(baseUrl: string): Promise<string[]> {
  const reflection = createClient(ServerReflection, createServiceTransport({ baseUrl }));
  async function* ask() {
    yield { messageRequest: { case: "listServices" as const, value: "" } };
  }
  const answers = await Array.fromAsync(reflection.serverReflectionInfo(ask()));
  return answers.flatMap(({ messageResponse: { case: kind, value } }) =>
    kind === "listServicesResponse" ? value.service.map(({ name }) => name) : [],
  );
}

/** The id under which the agent's call is stored; that of a fan-out, which is no call, as it is. */
async function storedId(callId: string): Promise<string> {
  const { registry } = callerOf(plane, plane.tokens.agent);
  const found = await registry.getCall({ callId }).catch(() => undefined);
  return found?.call?.id ?? callId;
}

/** A call's records, once there are as many as there have to be. */
function recordsOf(id: string, atLeast: number): Promise<AuditRecord[]> {
  return eventually(async () => {
    const { entries } = await operator.audit.listRecords({ callId: id });
    expect(entries.length).toBeGreaterThanOrEqual(atLeast);
    return entries.flatMap(({ record }) => record ?? []);
  });
}

function grantIn(record: AuditRecord | undefined): string {
  return record?.event.case === "decided" ? record.event.value.grantId : "";
}

/** The device's ledger knows nothing of the call: it was never sent there. */
async function expectNeverSent(id: string): Promise<void> {
  const device = deviceClient(plane, plane.tokens.auditor);
  expect(await device.getExecution({ callId: id }).catch(reasonOf)).toBe(ErrorReason.NOT_FOUND);
}

/** The receipt in the device's ledger, which has to be signed by the device. */
async function receiptOf(id: string): Promise<Receipt> {
  const device = deviceClient(plane, plane.tokens.auditor);
  const { manifest } = await device.getManifest({});
  const { publicKey } = fromBinary(ManifestSchema, manifest?.payload ?? new Uint8Array());
  const keyring = createKeyring([verifyKeyFromRaw(publicKey)]);
  const verifier = createBatchVerifier({ keyring, statementType: "application/vnd.reeve.receipt.v1" });
  const verified = verifier.verify((await device.getExecution({ callId: id })).finished?.receipt);
  if (!verified.ok) throw new Error(`the receipt of ${id} does not verify: ${verified.kind}`);
  return fromBinary(ReceiptSchema, verified.statement);
}
