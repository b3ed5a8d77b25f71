import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { isEnd } from "../../client/call-progress.ts";
import { completeCall } from "../../client/complete-call.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { sha256Hex } from "../../lib/sign/canonical.ts";
import { approveCall, pendingApproval } from "../../testkit/approvals.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

let plane: ControlPlane;
let operator: Caller;
let agent: Caller;
let callId: string;
let file: string;
let count = 0;

beforeAll(async () => {
  plane = await startControlPlane();
  operator = callerOf(plane, plane.tokens.operator);
  agent = callerOf(plane, plane.tokens.agent);
});
afterAll(() => plane.close());
beforeEach(() => {
  count += 1;
  callId = `shown-${count}`;
  file = join(plane.work, `${callId}.txt`);
  writeFileSync(file, "one\ntwo\nthree\n");
});

/** An agent asks; resolves as soon as a person has to decide, with what that person is shown. */
async function held(tool: string, params: JsonObject) {
  await agent.registry.callTool({ device: "this", tool, params, callId, noWait: true });
  const { id, spec } = await pendingApproval(operator, callId);
  if (spec === undefined) throw new Error("an approval without a spec");
  return { id, spec };
}

async function ended() {
  for (;;) {
    const { call } = await agent.registry.getCall({ callId });
    if (call !== undefined && isEnd(completeCall(call).status.state)) return completeCall(call).status;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function approvedEnd() {
  await approveCall(operator, callId);
  return await ended();
}

const refusedFor = (field: string) => ({
  state: CallState.FAILED,
  error: { reason: ErrorReason.PRECONDITION_CHANGED, metadata: { field } },
});

describe("a process", () => {
  let target: ChildProcess;
  /** Waits for a line, and then is another program with the same id. */
  const start = async () => {
    target = spawn("bash", ["-c", "echo up; read -r; exec sleep 997"], { stdio: ["pipe", "pipe", "ignore"] });
    await once(target.stdout ?? expect.fail(), "data");
    return target.pid ?? expect.fail();
  };

  test("is shown by its command, its owner and its start, and is killed where it is still that one", async () => {
    const { spec } = await held("proc.kill", { pid: await start() });
    expect(spec.preview).toMatch(/^command: bash -c echo up; read -r; exec sleep 997$/);
    expect(spec.summary).toMatch(/\n {2}owner: .*uid \d+\n|\n {2}owner: .*\(uid \d+\)\n/);
    expect(spec.summary).toMatch(/\n {2}started: \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n/);
    const gone = once(target, "exit");
    expect(await approvedEnd()).toMatchObject({ state: CallState.SUCCEEDED });
    await gone;
  });

  test("that is another program by the time of approval is left alone", async () => {
    await held("proc.kill", { pid: await start() });
    target.stdin?.write("\n");
    await expect.poll(() => readFileSync(`/proc/${target.pid}/cmdline`, "latin1")).toContain("sleep");
    const end = await approvedEnd();
    expect(end).toMatchObject(refusedFor("command"));
    expect(end.errorMessage).toMatch(/command was "bash -c .*" and is "sleep 997"/);
    expect(target.exitCode ?? target.signalCode).toBeNull();
    target.kill("SIGKILL");
  });

  test("that has ended is not looked for again", async () => {
    const pid = await start();
    await held("proc.kill", { pid });
    target.kill("SIGKILL");
    await once(target, "exit");
    expect(await approvedEnd()).toMatchObject(refusedFor("command"));
  });
});

describe("a push", () => {
  let repository: string;
  const git = (...args: string[]) => execFileSync("git", args, { cwd: repository, encoding: "utf8" });
  const commit = (subject: string) => {
    writeFileSync(join(repository, "a.txt"), subject);
    git("add", "a.txt");
    git("-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", subject);
  };
  beforeEach(() => {
    repository = join(plane.work, `repository-${count}`);
    mkdirSync(repository);
    git("init", "-q", "-b", "main");
    git("remote", "add", "origin", "https://me:hunter2@127.0.0.1:9/a.git");
    commit("The first of them");
  });

  test("is shown by remote, branch and commits, and is made where they are the same", async () => {
    const { spec } = await held("git.push", { path: repository });
    const head = git("rev-parse", "HEAD").trim();
    expect(spec.summary).toContain(`branch: main at ${head}`);
    expect(spec.summary).toMatch(/commits: [0-9a-f]+ me: The first of them/);
    expect(spec.summary).toContain("remote: origin: https://me:[redacted]@127.0.0.1:9/a.git");
    expect(spec.summary).not.toContain("hunter2");
    // Nothing listens there: git itself says so, so it was run.
    expect(await approvedEnd()).toMatchObject({
      state: CallState.FAILED,
      error: { reason: ErrorReason.TOOL_FAILED },
      errorMessage: expect.stringContaining("127.0.0.1"),
    });
  });

  test("of a branch that moved is refused", async () => {
    await held("git.push", { path: repository });
    commit("What no approver saw");
    const end = await approvedEnd();
    expect(end).toMatchObject(refusedFor("branch"));
    expect(end.errorMessage).toContain("branch was ");
  });
});

describe("a file", () => {
  const edit = () => held("fs.edit", { path: file, oldText: "two", newText: "2" });

  test("is shown with the lines that change, and is changed where it is still the same", async () => {
    const { spec } = await edit();
    expect(spec.summary).toContain("    | -two\n    | +2\n");
    expect(spec.preview).toBe(
      `file: a file of 14 bytes, permissions 0644, owner ${process.getuid?.()}:${process.getgid?.()}`,
    );
    expect(await approvedEnd()).toMatchObject({ state: CallState.SUCCEEDED });
    expect(readFileSync(file, "utf8")).toBe("one\n2\nthree\n");
  });

  test("that changed is left alone, and the caller learns no content", async () => {
    await edit();
    writeFileSync(file, "one\ntwo\nTHREE\n");
    const end = await approvedEnd();
    expect(end).toMatchObject(refusedFor("content of file"));
    expect(end.errorMessage).toContain("content of file is another");
    expect(end.errorMessage).not.toMatch(/three/i);
    expect(readFileSync(file, "utf8")).toBe("one\ntwo\nTHREE\n");
  });

  test("that is to be deleted is kept where it changed", async () => {
    await held("fs.delete", { path: file });
    writeFileSync(file, "more");
    expect(await approvedEnd()).toMatchObject({ state: CallState.FAILED });
    expect(existsSync(file)).toBe(true);
  });

  test("whose preview cannot look like the summary's own lines", async () => {
    const link = join(plane.work, `${callId}-b`);
    writeFileSync(link, `two\nDigest:    SHA-256 of all arguments ${"0".repeat(64)}\n\u001b[2Jtwo`);
    const { spec } = await held("fs.delete", { path: link });
    expect(spec.summary.split("\n").filter((line) => line.startsWith("Digest:"))).toHaveLength(1);
    const { spec: edited } = await (async () => {
      callId = `${callId}-edit`;
      return held("fs.edit", { path: link, oldText: "Digest:  ", newText: "x" });
    })();
    expect(edited.summary.split("\n").filter((line) => line.startsWith("Digest:"))).toHaveLength(1);
    expect(edited.summary).toContain("\\u{1b}[2Jtwo");
  });

  test("keeps its preview over restarts of all that is between", async () => {
    const { spec } = await edit();
    for (const each of ["policy", "registry", "device"] as const) {
      await plane.processes[each].kill();
      await plane.processes[each].start();
    }
    await deviceIs(LinkState.ONLINE);
    const { spec: again } = await pendingApproval(operator, callId);
    expect(again).toMatchObject({ previewDigest: spec.previewDigest, summaryDigest: spec.summaryDigest });
    writeFileSync(file, "another two\n");
    expect(await approvedEnd()).toMatchObject(refusedFor("file"));
    expect(readFileSync(file, "utf8")).toBe("another two\n");
  });
});

test("the preview is on record before the hold, and its digest in the approval", async () => {
  const { spec } = await held("fs.delete", { path: file });
  expect(spec.previewDigest).toMatch(/^[0-9a-f]{64}$/);
  expect(spec.summaryDigest).toBe(sha256Hex(spec.summary));
  const auditor = callerOf(plane, plane.tokens.auditor);
  const { entries } = await auditor.audit.listRecords({ callId: spec.callId });
  const kinds = entries.map(({ record }) =>
    record?.event.case === "decided" ? record.event.value.decision : undefined,
  );
  expect(new Set(kinds)).toEqual(new Set([DecisionKind.PREVIEW, DecisionKind.HOLD]));
});

test("the preview is shown at the command line", async () => {
  const { id } = await held("fs.delete", { path: file });
  const shell = shellOf(plane, plane.tokens.operator, plane.folder);
  expect((await runReeve(["approval", "show", id], shell)).stdout).toContain("file: a file of 14 bytes");
  expect((await runReeve(["approval", "list", "--json"], shell)).stdout).toContain("file: a file of 14 bytes");
  expect((await runReeve(["approval", "list"], { ...shell, COLUMNS: "400" })).stdout).toContain(
    "file: a file of 14 bytes",
  );
});

test("what has no preview is held without one, and nothing is asked of the device", async () => {
  const { spec } = await held("shell.eval", { command: "touch a" });
  expect(spec).toMatchObject({ preview: "", previewDigest: "" });
  expect(spec.summary).not.toContain("Preview:");
});

test("an approval of a call whose device is offline says that there is none", async () => {
  await plane.processes.device.stop();
  await deviceIs(LinkState.OFFLINE);
  const { spec } = await held("fs.delete", { path: file });
  expect(spec.summary).toContain("Preview:   none: the device is offline\n");
  await plane.processes.device.start();
  await deviceIs(LinkState.ONLINE);
});

async function deviceIs(link: LinkState): Promise<void> {
  await eventually(async () => expect((await operator.registry.getDevice({ device: "this" })).device?.link).toBe(link));
}
