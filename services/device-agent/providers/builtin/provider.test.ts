import { describe, expect, it } from "vitest";
import { parseHosts } from "../../../../lib/hosts/host-list.ts";
import { createLocalExecutor } from "../../executor/local.ts";
import { createTestContext } from "../../tools/testing/context.ts";
import { createToolTable, probeTools } from "./provider.ts";

const NAMES =
  "device.ping exec shell.eval fs.read fs.write fs.list fs.stat fs.delete fs.move fs.search fs.edit fs.undo git.clone git.commit git.push job.list job.status job.output job.cancel pkg.install pkg.search proc.list proc.kill docker.list docker.exec docker.logs http.get http.post matrix.send ssh.exec";

describe("the table", () => {
  it("has all built-in tools", () => {
    expect([...createToolTable().keys()].toSorted()).toEqual(NAMES.split(" ").toSorted());
  });

  it("runs a tool from JSON to JSON", async () => {
    using test = createTestContext();
    const { tool } = createToolTable().get("exec") ?? expect.fail();
    const prepared = tool.prepare({ argv: ["echo", "hi"] });
    if (!prepared.ok) throw new Error("the arguments are refused");
    expect(await prepared.run(test.context)).toMatchObject({ stdout: "hi\n", exitCode: 0, stderr: "" });
  });
});

describe("the probe", () => {
  it("offers nothing that needs a program where there is none, and says what is missing", async () => {
    const executor = createLocalExecutor({ env: { PATH: "/nonexistent" } });
    const { available, unavailable } = await probeTools(createToolTable().values(), executor);
    const offered = available.map(({ spec }) => spec.name);
    expect(offered).toEqual([
      "device.ping",
      "exec",
      "fs.read",
      "fs.write",
      "fs.list",
      "fs.stat",
      "fs.delete",
      "fs.move",
      "fs.search",
      "fs.edit",
      "fs.undo",
      "job.list",
      "job.status",
      "job.output",
      "job.cancel",
      "proc.list",
      "proc.kill",
    ]);
    expect(unavailable).toContainEqual({ tool: "shell.eval", program: "bash", why: "bash is not on the PATH" });
    expect(unavailable.find(({ tool }) => tool === "docker.list")?.program).toBe("docker, podman");
  });

  it("does not offer a client without an engine", async () => {
    using test = createTestContext();
    const table = createToolTable({ docker: { env: { DOCKER_HOST: `unix://${test.folder}/none.sock` } } });
    const { unavailable } = await probeTools(table.values(), test.context.executor);
    const missing = unavailable.filter(({ tool }) => tool.startsWith("docker."));
    expect(missing.map(({ tool }) => tool)).toEqual(["docker.list", "docker.exec", "docker.logs"]);
    for (const each of missing) expect(each.program).toMatch(/^(?:docker|podman|docker, podman)$/);
  });
});

describe("the tools that connect to other machines", () => {
  it.each([
    [[], false],
    [["api.example.com"], true],
  ])("with the hosts %j: offered %j", async (hosts, offered) => {
    const executor = createLocalExecutor({ env: process.env });
    const { available, unavailable } = await probeTools(
      createToolTable({ hosts: parseHosts(hosts) }).values(),
      executor,
    );
    const names = ["http.get", "http.post", "matrix.send", "ssh.exec"];
    expect(names.every((name) => available.some(({ spec }) => spec.name === name))).toBe(offered);
    expect(unavailable.some(({ why }) => why.includes("REEVE_DEVICE_HOSTS"))).toBe(!offered);
  });
});
