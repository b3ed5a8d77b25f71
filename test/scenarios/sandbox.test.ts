import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { ReceiptSchema } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { HAS_BWRAP } from "../../services/device-agent/testing/test-sandbox.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

const clientOf = ({ registry, tokens }: TestStack, role: "agent" | "operator"): RegistryClient =>
  registryClient(createServiceTransport({ baseUrl: registry.url, token: tokens[role], protocol: "grpc" }));

/** What becomes of a program without a person, by the policy that is shipped. */
const exec = (client: RegistryClient, ...argv: string[]) => run(client, "exec", { argv });

/** The same of shell text. */
const evaluate = (client: RegistryClient, command: string) => run(client, "shell.eval", { command });

async function run(client: RegistryClient, tool: string, params: JsonObject) {
  const { call } = await client.callTool({ tool, params, approvalWait: durationFromMs(0) });
  const { state, sandbox, output, receipt } = call?.status ?? {};
  const level = receipt && fromBinary(ReceiptSchema, receipt.statement).sandbox;
  return { state, sandbox, level, exitCode: output?.exitCode, stdout: output?.stdout, stderr: output?.stderr };
}

describe.runIf(HAS_BWRAP)("on a device with a sandbox", () => {
  let stack: TestStack;
  let agent: RegistryClient;
  beforeAll(async () => {
    stack = await startTestStack();
    agent = clientOf(stack, "agent");
    await writeFile(join(stack.workFolder, "notes.txt"), "three words here\n");
    await symlink("/etc/shadow", join(stack.workFolder, "link"));
  });
  afterAll(() => stack.close());

  test("an agent's program that looks at files runs without a person, read-only, and its receipt says so", async () => {
    const level = SandboxLevel.READ_ONLY;
    expect(await exec(agent, "ls", stack.workFolder)).toMatchObject({
      state: CallState.SUCCEEDED,
      sandbox: level,
      level,
      exitCode: 0,
      stdout: "link\nnotes.txt\n",
    });
    expect(await exec(agent, "wc", "-w", join(stack.workFolder, "notes.txt"))).toMatchObject({ level, exitCode: 0 });
  });

  test("what lies outside the roots is refused, or cannot be seen", async () => {
    for (const argv of [
      ["ls", "/root"],
      ["wc", "-c", "/etc/shadow"],
      ["cat", "/etc/shadow"],
      ["ls", stack.dataFolder],
    ]) {
      expect(await exec(agent, ...argv)).toMatchObject({ state: CallState.HELD });
    }
    // The rule sees the name only; the sandbox shows nothing where it leads.
    expect(await exec(agent, "wc", "-c", join(stack.workFolder, "link"))).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringContaining("No such file") as string,
    });
  });

  test("an agent's shell text that only looks runs without a person, as its plan", async () => {
    const text = "grep -c words ./*.txt && ls -1 | sort -r; cat none.txt 2>/dev/null || echo none";
    expect(await evaluate(agent, text)).toMatchObject({
      state: CallState.SUCCEEDED,
      level: SandboxLevel.READ_ONLY,
      exitCode: 0,
      stdout: "1\nnotes.txt\nlink\nnone\n",
    });
    expect(await evaluate(agent, "cat link")).toMatchObject({ exitCode: 1, stdout: "" });
  });

  test("every other shell text waits for a person", async () => {
    const texts =
      "ls /root|cat /etc/shadow|wc -c ../x|ls > made|touch made|ls $(pwd)|for f in *; do cat $f; done|ps aux|ls ~";
    for (const text of texts.split("|")) {
      expect([text, (await evaluate(agent, text)).state]).toEqual([text, CallState.HELD]);
    }
    expect(await evaluate(clientOf(stack, "operator"), "ls")).toMatchObject({ state: CallState.HELD });
  });

  test("each call has its own level: an operator's program runs outside, a look at the machine too", async () => {
    expect(await exec(clientOf(stack, "operator"), "ls", stack.workFolder)).toMatchObject({
      state: CallState.SUCCEEDED,
      level: SandboxLevel.NONE,
    });
    expect(await exec(agent, "uname")).toMatchObject({ state: CallState.SUCCEEDED, level: SandboxLevel.NONE });
    const { call } = await agent.callTool({ tool: "fs.list", params: { path: stack.workFolder } });
    expect(call?.status).toMatchObject({ state: CallState.SUCCEEDED, sandbox: SandboxLevel.UNSPECIFIED });
  });
});

describe.runIf(HAS_BWRAP)("where a policy lets every program run in the sandbox", () => {
  let stack: TestStack;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "reeve-policy-"));
    const rule = `  - id: all\n    effect: allow\n    tools: [exec, shell.eval]\n    obligations: { sandbox: read_only }\n    message: All of it.\n    match: [{ tool: exec, args: { argv: [ls] } }]\n`;
    await writeFile(join(folder, "policy.yaml"), `version: 1\nrules:\n${rule}`);
    stack = await startTestStack({ policyFile: join(folder, "policy.yaml") });
    await writeFile(join(folder, "outside.txt"), "outside\n");
  });
  afterAll(async () => {
    await stack.close();
    await rm(folder, { recursive: true });
  });

  test("none of them sees what lies outside the roots, or Reeve's own", async () => {
    const agent = clientOf(stack, "agent");
    for (const path of [
      "/root",
      "/etc/shadow",
      join(folder, "outside.txt"),
      stack.dataFolder,
      "/proc/1/root/etc/shadow",
    ]) {
      for (const program of ["ls", "cat", "wc"]) {
        const answer = await exec(agent, program, path);
        expect([program, path, answer.level, answer.exitCode === 0]).toEqual([
          program,
          path,
          SandboxLevel.READ_ONLY,
          false,
        ]);
        expect(answer.stdout).toMatch(/^(?:\s*0 .*\n)?$/);
      }
      expect(await evaluate(agent, `cd / && cat ${path} || (exec 3<${path})`)).toMatchObject({
        exitCode: 1,
        stdout: "",
      });
    }
    const written = await evaluate(agent, `echo x > ${join(stack.workFolder, "made")}`);
    expect(written).toMatchObject({ level: SandboxLevel.READ_ONLY, exitCode: 1 });
  });
});

describe.runIf(process.platform === "linux")("on a device without bubblewrap", () => {
  let stack: TestStack;
  let programs: string;
  const log: string[] = [];
  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), "reeve-programs-"));
    for (const name of ["ls", "cat", "wc", "uname", "bash"]) await symlink(`/usr/bin/${name}`, join(programs, name));
    const destination = { write: (line: string) => void log.push(line) };
    const logger = createLogger({ service: "test", level: "warn", destination });
    stack = await startTestStack({ logger, env: { ...process.env, PATH: programs } });
  });
  afterAll(async () => {
    await stack.close();
    await rm(programs, { recursive: true });
  });

  test("the agent says so when it starts, and what to install", () => {
    const lines = log.map((line) => JSON.parse(line) as { msg: string; why?: string });
    const why = expect.stringContaining("apt-get install bubblewrap") as string;
    expect(lines).toContainEqual(
      expect.objectContaining({ why, msg: expect.stringContaining("no sandbox") as string }),
    );
  });

  test("everything that needs one waits for a person, and says why", async () => {
    const agent = clientOf(stack, "agent");
    const { workFolder } = stack;
    const calls: [string, JsonObject][] = [
      ["exec", { argv: ["ls", workFolder] }],
      ["exec", { argv: ["cat", join(workFolder, "notes.txt")] }],
      ["exec", { argv: ["wc", "-l", join(workFolder, "notes.txt")] }],
      ["shell.eval", { command: "ls | cat" }],
      ["shell.eval", { command: "git status" }],
    ];
    for (const [tool, params] of calls) {
      const { call } = await agent.callTool({ tool, params, approvalWait: durationFromMs(0) });
      expect([params, call?.status?.state]).toEqual([params, CallState.HELD]);
      expect(call?.status?.decision?.ruleIds).toContain("mode/sandbox");
    }
  });

  test("what opens no file that a caller names runs, and says that nothing was between", async () => {
    const answer = await exec(clientOf(stack, "agent"), "uname");
    expect(answer).toMatchObject({ state: CallState.SUCCEEDED, level: SandboxLevel.NONE });
  });
});
