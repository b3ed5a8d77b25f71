import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecRequestSchema } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { createLocalExecutor } from "../executor/local.ts";
import { createToolTable, notAvailable, probeTools } from "./index.ts";
import { createTestContext } from "./testing/context.ts";

const NAMES =
  "device.ping exec shell.eval fs.read fs.write fs.list fs.stat git.clone git.commit git.push pkg.install pkg.search proc.list proc.kill docker.list docker.exec docker.logs";

describe("the table", () => {
  it("has all built-in tools", () => {
    expect([...createToolTable().keys()].toSorted()).toEqual(NAMES.split(" ").toSorted());
  });

  it("tells a tool's RPC, capability and time", () => {
    const table = createToolTable();
    const exec = table.get("exec") ?? expect.fail();
    expect([exec.id, exec.capability]).toEqual(["reeve.tools.v1.Shell/Exec", "shell.exec"]);
    expect(exec.timeoutMs(create(ExecRequestSchema, {}))).toBe(60_000);
    expect(exec.timeoutMs(create(ExecRequestSchema, { timeoutMs: 5 }))).toBe(5);
    const clone = table.get("git.clone") ?? expect.fail();
    expect(clone.timeoutMs(create(clone.input))).toBe(600_000);
  });

  it("runs a tool from message to message", async () => {
    using test = createTestContext();
    const exec = createToolTable().get("exec") ?? expect.fail();
    const output = await exec.run(create(ExecRequestSchema, { argv: ["echo", "hi"] }), test.context);
    expect(output).toMatchObject({ $typeName: "reeve.tools.v1.ExecResponse", stdout: "hi\n", exitCode: 0 });
  });
});

describe("the probe", () => {
  it("offers nothing that needs a program where there is none, and says what is missing", async () => {
    const executor = createLocalExecutor({ env: { PATH: "/nonexistent" } });
    const { available, unavailable } = await probeTools(createToolTable(), executor);
    const offered = available.map(({ name }) => name);
    expect(offered).toEqual([
      "device.ping",
      "exec",
      "fs.read",
      "fs.write",
      "fs.list",
      "fs.stat",
      "proc.list",
      "proc.kill",
    ]);
    expect(unavailable).toContainEqual({ tool: "shell.eval", program: "bash", why: "bash is not on the PATH" });
    expect(unavailable.find(({ tool }) => tool === "docker.list")?.program).toBe("docker, podman");
  });

  it("does not offer a client without an engine", async () => {
    using test = createTestContext();
    const table = createToolTable({ docker: { env: { DOCKER_HOST: `unix://${test.folder}/none.sock` } } });
    const { unavailable } = await probeTools(table, test.context.executor);
    const missing = unavailable.filter(({ tool }) => tool.startsWith("docker."));
    expect(missing.map(({ tool }) => tool)).toEqual(["docker.list", "docker.exec", "docker.logs"]);
    for (const each of missing) {
      expect(faultDetail(notAvailable(each))).toMatchObject({
        reason: ErrorReason.NOT_AVAILABLE,
        metadata: { tool: each.tool, program: each.program },
      });
    }
  });
});
