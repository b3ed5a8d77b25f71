import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonOf } from "../../lib/fault/fault.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { type GrpcJs, grpcJsClient } from "../../testkit/grpc-js.ts";

const run = promisify(execFile);
const BUF = join(import.meta.dirname, "..", "..", "node_modules", ".bin", "buf");
const READ = "reeve.tools.v1.FileSystem/Read";
const EXEC = "reeve.tools.v1.Shell/Exec";

let plane: ControlPlane;
let operator: Caller;
let asOperator: GrpcJs;
let asAgent: GrpcJs;
/** For each test: a call's id, and a file that the call would make. */
let callId: string;
let mark: string;

beforeAll(async () => {
  plane = await startControlPlane();
  operator = callerOf(plane, plane.tokens.operator);
  const protos = ["reeve/tools/v1/file_system.proto", "reeve/tools/v1/shell.proto"];
  asOperator = await grpcJsClient(plane.registry.url, plane.tokens.operator, protos);
  asAgent = await grpcJsClient(plane.registry.url, plane.tokens.agent, protos);
  await writeFile(join(plane.work, "note.txt"), "a note\n");
  await writeFile(join(plane.work, ".env"), "PASSWORD=hunter2\n");
});
afterAll(async () => {
  asOperator[Symbol.dispose]();
  asAgent[Symbol.dispose]();
  await plane.close();
});
beforeEach(() => {
  callId = `typed-${randomBytes(6).toString("hex")}`;
  mark = join(plane.work, callId);
});

/** What a call ended with: the error's typed detail and its code. */
async function refusalOf(call: Promise<unknown>) {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ConnectError)) throw new Error("the call was not refused", { cause: error });
  const detail = faultDetail(error);
  return {
    code: error.code,
    reason: detail?.reason,
    metadata: { ...detail?.metadata },
    fields: (detail?.violations ?? []).map(({ field }) => field),
  };
}

describe.each(["grpc", "grpcweb", "connect"])("buf curl over %s, by reflection alone,", (protocol) => {
  const curl = async (rpc: string, body: object): Promise<unknown> => {
    const headers = [`Authorization: Bearer ${plane.tokens.operator}`, "reeve-device: this"];
    const options = ["--http2-prior-knowledge", "--protocol", protocol, ...headers.flatMap((header) => ["-H", header])];
    const url = `${plane.registry.url}/${rpc}`;
    const { stdout } = await run(BUF, ["curl", ...options, "-d", JSON.stringify(body), url], { cwd: tmpdir() });
    return JSON.parse(stdout);
  };

  test("reads a file", async () => {
    expect(await curl(READ, { path: join(plane.work, "note.txt") })).toMatchObject({ text: "a note\n" });
  });

  test("runs a program", async () => {
    expect(await curl(EXEC, { argv: ["echo", protocol] })).toMatchObject({ stdout: `${protocol}\n` });
  });
});

describe("a client of grpc-js that knows only the .proto files", () => {
  test("reads a file, and learns the call and where it is on record", async () => {
    const path = join(plane.work, "note.txt");
    const headers = { "reeve-device": "this", "reeve-call-id": callId, "reeve-purpose": "to know" };
    const { response, header } = await asOperator.call(READ, { path }, headers);
    expect(response).toMatchObject({ text: "a note\n" });
    expect(header("reeve-call-id")).toBe(callId);
    const { call } = await operator.registry.getCall({ callId });
    expect(call).toMatchObject({
      spec: { tool: "fs.read", purpose: "to know" },
      status: { state: CallState.SUCCEEDED },
    });
    expect(header("reeve-audit-index")).toBe(String(call?.status?.decision?.auditIndex));
  });

  test("runs a program", async () => {
    const { response } = await asOperator.call(EXEC, { argv: ["sh", "-c", "echo out; exit 3"] });
    expect(response).toMatchObject({ stdout: "out\n", exitCode: 3 });
  });

  test("learns by a typed reason that a call is denied", async () => {
    const refused = await refusalOf(asAgent.call(READ, { path: join(plane.work, ".env") }));
    expect(refused).toMatchObject({
      code: Code.PermissionDenied,
      reason: ErrorReason.POLICY_DENIED,
    });
  });

  test("gets the approval of a held call, which runs when it is approved", async () => {
    const asked = [EXEC, { argv: ["touch", mark] }, { "reeve-call-id": callId }] as const;
    const refused = await refusalOf(asAgent.call(...asked));
    expect(refused).toMatchObject({ code: Code.FailedPrecondition, reason: ErrorReason.APPROVAL_REQUIRED });
    expect(existsSync(mark)).toBe(false);
    const approval = await approveCall(operator, callId);
    expect(refused.metadata).toEqual({ approval_id: approval.id, call_id: approval.spec?.callId });
    // The approval travels from policy to the registry for a moment.
    const patient = { ...asked[2], "reeve-wait-ms": "20000" };
    const { response } = await asAgent.call(EXEC, { argv: ["touch", mark] }, patient);
    expect(response).toMatchObject({ exitCode: 0 });
    expect(existsSync(mark)).toBe(true);
  });

  test("waits for the approval where its deadline allows it", async () => {
    const deadline = Date.now() + 60_000;
    const answer = asAgent.call(EXEC, { argv: ["touch", mark] }, { "reeve-call-id": callId }, { deadline });
    await approveCall(operator, callId);
    expect((await answer).response).toMatchObject({ exitCode: 0 });
    expect(existsSync(mark)).toBe(true);
  });

  test("learns of the approval before its deadline passes", async () => {
    const deadline = Date.now() + 4000;
    const refused = await refusalOf(asAgent.call(EXEC, { argv: ["touch", mark] }, {}, { deadline }));
    expect(refused).toMatchObject({ code: Code.FailedPrecondition, reason: ErrorReason.APPROVAL_REQUIRED });
  });

  test("learns at once where it asks not to wait, and waits where it asks to without a deadline", async () => {
    const headers = { "reeve-call-id": callId };
    const deadline = Date.now() + 60_000;
    const call = (more: Record<string, string>, options = {}) =>
      asAgent.call(EXEC, { argv: ["touch", mark] }, { ...headers, ...more }, options);
    expect(await refusalOf(call({ "reeve-wait-ms": "0" }, { deadline }))).toMatchObject({
      reason: ErrorReason.APPROVAL_REQUIRED,
    });
    const answer = call({ "reeve-wait-ms": "60000" });
    await approveCall(operator, callId);
    expect((await answer).response).toMatchObject({ exitCode: 0 });
  });

  test("leaves a call running when its deadline passes", async () => {
    const deadline = Date.now() + 1000;
    const argv = ["sh", "-c", `sleep 2; touch ${mark}`];
    const error = await asOperator
      .call(EXEC, { argv }, { "reeve-call-id": callId }, { deadline })
      .catch(ConnectError.from);
    expect(error).toMatchObject({ code: Code.DeadlineExceeded });
    const { response } = await asOperator.call(EXEC, { argv }, { "reeve-call-id": callId });
    expect(response).toMatchObject({ exitCode: 0 });
    expect(existsSync(mark)).toBe(true);
  });

  test("makes the same call as CallService/CallTool with the same id", async () => {
    const argv = ["sh", "-c", `echo once >> ${mark}; cat ${mark}`];
    const { response } = await asOperator.call(EXEC, { argv }, { "reeve-call-id": callId });
    const { call } = await operator.registry.callTool({ tool: "exec", params: { argv }, callId });
    expect(call?.status?.output).toMatchObject({ stdout: "once\n" });
    expect(response).toMatchObject({ stdout: "once\n" });
  });

  test("learns which field or header is wrong, and what there is not", async () => {
    const wrong = (request: object, headers: Record<string, string>) =>
      refusalOf(asOperator.call(EXEC, request, headers));
    const argv = ["uname"];
    expect(await wrong({ argv: [] }, {})).toMatchObject({ code: Code.InvalidArgument, fields: ["argv"] });
    expect(await wrong({ argv }, { "reeve-wait-ms": "soon" })).toMatchObject({ fields: ["reeve-wait-ms"] });
    expect(await wrong({ argv }, { "reeve-wait-ms": "3600001" })).toMatchObject({ fields: ["reeve-wait-ms"] });
    expect(await wrong({ argv }, { "reeve-call-id": "a/b" })).toMatchObject({ fields: ["reeve-call-id"] });
    expect(await wrong({ argv }, { "reeve-device": "other" })).toMatchObject({
      code: Code.NotFound,
      reason: ErrorReason.UNKNOWN_DEVICE,
    });
    expect(await wrong({ argv: ["no-such-program"] }, {})).toMatchObject({
      code: Code.FailedPrecondition,
      reason: ErrorReason.START_FAILED,
    });
  });

  test.each([
    ["auditor", ErrorReason.ROLE_REQUIRED],
    ["service", ErrorReason.ROLE_REQUIRED],
  ] as const)("is refused with the token of the %s", async (who, reason) => {
    using client = await grpcJsClient(plane.registry.url, plane.tokens[who], ["reeve/tools/v1/shell.proto"]);
    expect(await client.call(EXEC, { argv: ["touch", mark] }).catch(reasonOf)).toBe(reason);
    expect(existsSync(mark)).toBe(false);
  });
});
