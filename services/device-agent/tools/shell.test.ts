import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { WriteMode, WriteRequestSchema } from "../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { EvalRequestSchema, ExecRequestSchema } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { fileSystemTools } from "./file-system.ts";
import { shellTools } from "./shell.ts";
import { createTestContext, faultOf, type TestContext } from "./testing/context.ts";

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

const exec = (input: MessageInitShape<typeof ExecRequestSchema>) =>
  shellTools.exec(create(ExecRequestSchema, input), test.context);
const evaluate = (input: MessageInitShape<typeof EvalRequestSchema>) =>
  shellTools.eval(create(EvalRequestSchema, input), test.context);

describe("exec", () => {
  it("runs in the work folder and returns what was printed", async () => {
    const answer = await exec({ argv: ["sh", "-c", "pwd; echo err >&2; exit 3"] });
    expect(answer).toMatchObject({ stdout: `${test.folder}\n`, stderr: "err\n", exitCode: 3, truncated: false });
    expect(test.live).toEqual({ stdout: `${test.folder}\n`, stderr: "err\n" });
  });

  it("runs in a folder of the roots, with input and variables", async () => {
    mkdirSync(join(test.folder, "sub"));
    const answer = await exec({
      argv: ["sh", "-c", "pwd; cat; echo $A"],
      cwd: join(test.folder, "sub"),
      stdin: "in\n",
      env: { A: "b" },
    });
    expect(answer.stdout).toBe(`${test.folder}/sub\nin\nb\n`);
  });

  it("does not run a file that a caller has put into a folder of the PATH, and says which file it ran", async () => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), "reeve-home-")));
    mkdirSync(join(home, "bin"));
    using other = createTestContext({ write: [home], workDir: home, env: { PATH: `${home}/bin:${process.env.PATH}` } });
    const path = join(home, "bin", "nproc");
    const planted = { path, text: "#!/bin/sh\necho planted\n", mode: WriteMode.CREATE, permissions: 0o755 };
    await fileSystemTools.write(create(WriteRequestSchema, planted), other.context);
    const byName = await shellTools.exec(create(ExecRequestSchema, { argv: ["nproc"] }), other.context);
    expect(byName).toMatchObject({
      stdout: expect.stringMatching(/^\d+\n$/),
      program: expect.stringMatching(/bin\/nproc$/),
    });
    expect(byName.program).not.toBe(path);
    // What a program looks up by name is not that file either.
    const argv = ["sh", "-c", "command -v nproc"];
    const byShell = await shellTools.exec(create(ExecRequestSchema, { argv }), other.context);
    expect(byShell.stdout).not.toContain(home);
    rmSync(home, { recursive: true });
  });

  it("runs in no granted folder where there is none", async () => {
    using other = createTestContext({ write: [], workDir: undefined });
    const run = (cwd = "") => shellTools.exec(create(ExecRequestSchema, { argv: ["pwd"], cwd }), other.context);
    expect((await run()).stdout).toBe("/\n");
    expect((await faultOf(run("/"))).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
  });

  it("refuses a folder outside, behind a link, or missing", async () => {
    symlinkSync("/etc", join(test.folder, "link"));
    const reasons = [];
    for (const cwd of ["/", join(test.folder, "link"), join(test.folder, "none")]) {
      reasons.push((await faultOf(exec({ argv: ["true"], cwd }))).reason);
    }
    const { PATH_OUTSIDE_ROOTS, TARGET_NOT_FOUND } = ErrorReason;
    expect(reasons).toEqual([PATH_OUTSIDE_ROOTS, PATH_OUTSIDE_ROOTS, TARGET_NOT_FOUND]);
  });

  it("gives 128 and the number for a signal", async () => {
    expect(await exec({ argv: ["sh", "-c", "kill -TERM $$"] })).toMatchObject({ exitCode: 143 });
  });

  it("fails with what was printed when the time is up", async () => {
    const fault = await faultOf(exec({ argv: ["sh", "-c", "echo started; sleep 100"], timeoutMs: 2000 }));
    expect(fault).toMatchObject({ reason: ErrorReason.TIMED_OUT, metadata: { timeout_ms: "2000" } });
    expect(fault.message).toContain("started");
  });

  it("fails when the call is canceled", async () => {
    const controller = new AbortController();
    const emit = () => {
      controller.abort();
      return undefined;
    };
    const context = { ...test.context, signal: controller.signal, emit };
    const input = create(ExecRequestSchema, { argv: ["sh", "-c", "echo started; sleep 100"] });
    expect((await faultOf(shellTools.exec(input, context))).reason).toBe(ErrorReason.CANCELED);
  });

  it("distinguishes a program that could not start from one that failed", async () => {
    const fault = await faultOf(exec({ argv: ["no-such-program"] }));
    expect(fault).toMatchObject({ reason: ErrorReason.START_FAILED, metadata: { program: "no-such-program" } });
    expect(await exec({ argv: ["false"] })).toMatchObject({ exitCode: 1 });
  });
});

describe("eval", () => {
  it("runs the exact text with bash and says so", async () => {
    const command = "for i in 1 2; do echo $i; done | sort -r; exit 4";
    expect(await evaluate({ command })).toMatchObject({ stdout: "2\n1\n", exitCode: 4, cmdExecuted: command });
  });

  it("takes text that begins with a dash for text", async () => {
    expect(await evaluate({ command: "-x; echo on" })).toMatchObject({ stdout: "on\n", exitCode: 0 });
  });

  it("reads no start-up files", async () => {
    const { stdout } = await evaluate({ command: `shopt -q login_shell; echo $?; echo \${BASH_ENV-unset}` });
    expect(stdout).toBe("1\nunset\n");
  });
});
