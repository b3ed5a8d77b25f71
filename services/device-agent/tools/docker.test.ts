import { existsSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  DockerExecRequestSchema,
  DockerListRequestSchema,
  DockerLogsRequestSchema,
} from "../../../gen/ts/reeve/tools/v1/docker_pb.ts";
import { findEngine } from "./docker/engine.ts";
import { parseContainers } from "./docker/parse-containers.ts";
import { createDockerTools } from "./docker.ts";
import { startTestEngine, type TestEngine } from "./testing/container-engine.ts";
import { createTestContext, faultOf, type TestContext } from "./testing/context.ts";

const HAS_CLIENT = (process.env.PATH ?? "").split(":").some((folder) => existsSync(join(folder, "docker")));

describe.runIf(HAS_CLIENT)("the docker client with an engine", () => {
  let test: TestContext;
  let engine: TestEngine;
  let tools: ReturnType<typeof createDockerTools>;
  beforeEach(async () => {
    test = createTestContext();
    engine = await startTestEngine(join(test.folder, "engine.sock"));
    tools = createDockerTools({ env: { DOCKER_HOST: `unix://${engine.socket}` } });
  });
  afterEach(async () => {
    await engine[Symbol.asyncDispose]();
    test[Symbol.dispose]();
  });

  it("is found", async () => {
    const env = { DOCKER_HOST: `unix://${engine.socket}` };
    expect(await findEngine(test.context.executor, { env })).toEqual({ kind: "client", program: "docker" });
  });

  it("lists containers", async () => {
    const answer = await tools.list(create(DockerListRequestSchema, {}), test.context);
    expect(answer.containers).toEqual([
      {
        id: "0123456789abcdef".repeat(4),
        name: "web",
        image: "nginx:1",
        state: "running",
        status: "Up 3 hours",
        ports: "0.0.0.0:8080->80/tcp",
        created: expect.stringContaining("2023-11-14"),
      },
    ]);
    const all = await tools.list(create(DockerListRequestSchema, { all: true, maxResults: 1 }), test.context);
    expect([all.containers?.length, all.truncated]).toEqual([1, true]);
  });

  it("runs a program, with user and folder, and returns its exit code", async () => {
    const input = { container: "web", argv: ["ls", "-l", "$HOME"], user: "app", cwd: "/srv" };
    const answer = await tools.exec(create(DockerExecRequestSchema, input), test.context);
    expect(answer).toMatchObject({ stdout: "out\n", stderr: "err\n", exitCode: 7 });
    expect(engine.asked[0]).toMatchObject({ Cmd: ["ls", "-l", "$HOME"], User: "app", WorkingDir: "/srv" });
  });

  it("reads the end of a log", async () => {
    const input = create(DockerLogsRequestSchema, { container: "web", since: timestampFromMs(1_700_000_000_000) });
    const answer = await tools.logs(input, test.context);
    expect(answer).toEqual({
      stdout: "2023-11-14T22:13:20Z line\n",
      stderr: "2023-11-14T22:13:21Z bad\n",
      truncated: false,
    });
    expect(engine.logQueries[0]?.get("tail")).toBe("200");
    expect(engine.logQueries[0]?.get("since")).toContain("1700000000");
  });

  it("distinguishes a missing container from one that is stopped", async () => {
    const exec = (container: string) =>
      tools.exec(create(DockerExecRequestSchema, { container, argv: ["x"] }), test.context);
    expect(await faultOf(exec("none"))).toMatchObject({
      reason: ErrorReason.TARGET_NOT_FOUND,
      metadata: { field: "container" },
    });
    const stopped = await faultOf(exec("stopped"));
    expect(stopped.reason).toBe(ErrorReason.TOOL_FAILED);
    expect(stopped.message).toContain("not running");
  });
});

it("says which client has no engine", async () => {
  using test = createTestContext({ env: { PATH: "/nonexistent" } });
  const tools = createDockerTools();
  expect(await faultOf(tools.list(create(DockerListRequestSchema, {}), test.context))).toMatchObject({
    reason: ErrorReason.NOT_AVAILABLE,
    metadata: { tool: "docker.list", program: "docker, podman" },
  });
});

it("reads the list of podman", () => {
  const row = {
    Id: "abc",
    Names: ["web", "alias"],
    Image: "docker.io/library/nginx:latest",
    State: "running",
    Status: "Up 3 hours",
    CreatedAt: "3 hours ago",
    Ports: [
      { host_ip: "", container_port: 80, host_port: 8080, range: 1, protocol: "tcp" },
      { host_ip: "127.0.0.1", container_port: 90, host_port: 9000, range: 3, protocol: "udp" },
    ],
  };
  expect(parseContainers(JSON.stringify([row]))).toEqual([
    {
      id: "abc",
      name: "web,alias",
      image: "docker.io/library/nginx:latest",
      state: "running",
      status: "Up 3 hours",
      ports: "0.0.0.0:8080->80/tcp, 127.0.0.1:9000-9002->90-92/udp",
      created: "3 hours ago",
    },
  ]);
  expect(parseContainers("\n")).toEqual([]);
});
