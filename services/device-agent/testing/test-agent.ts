import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { DeviceAgentService, type ExecutionFinished } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { createLogger } from "../../../lib/log/log.ts";
import { inMemoryTransport } from "../../../lib/server/in-memory.fixture.ts";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import { builtInTools } from "../../../lib/toolschema/catalog-file.ts";
import type { DeviceAgentConfig } from "../config.ts";
import { createDeviceAgent, type DeviceAgent, type DeviceAgentOptions } from "../service.ts";
import { createTestGrants, type TestGrants } from "./grants.ts";

/** The control plane, as a device sees it. */
const SERVICE: Principal = { id: "registry", kind: "service", roles: [Role.SERVICE], name: "registry" };

/** A whole device agent with its real tools. */
export interface TestAgent extends AsyncDisposable {
  readonly agent: DeviceAgent;
  readonly grants: TestGrants;
  /** A client with the role of the control plane. */
  readonly client: Client<typeof DeviceAgentService>;
  readonly config: DeviceAgentConfig;
  /** The one root, writable. */
  readonly work: string;
  /** Runs a call with a good grant. */
  execute(tool: string, args: JsonObject): Promise<ExecutionFinished>;
  /** Closes the agent and makes it again from its folder. */
  restart(): Promise<void>;
}

/** Makes a device agent in a folder of its own, which is removed with it. Its state lies inside its root. */
export async function openTestAgent(
  changes: Partial<DeviceAgentConfig> = {},
  { now = Date.now, env = process.env }: Partial<Pick<DeviceAgentOptions, "now" | "env">> = {},
): Promise<TestAgent> {
  const work = await mkdtemp(join(tmpdir(), "reeve-agent-"));
  const stateDir = join(work, "state");
  await mkdir(stateDir);
  const config = { stateDir, name: "test", mode: Mode.ALL, readRoots: [], writeRoots: [work], ...changes };
  const key = generateSigningKey();
  const open = (): Promise<DeviceAgent> =>
    createDeviceAgent({
      config,
      grantKeys: [key],
      logger: createLogger({ service: "device-agent", level: "silent" }),
      env,
      now,
    });
  let agent = await open();
  const device: TestAgent = {
    get agent() {
      return agent;
    },
    get grants() {
      return createTestGrants(
        { deviceId: agent.deviceId, manifestDigest: agent.manifest().digest, tools: builtInTools },
        { key, now },
      );
    },
    get client() {
      return createClient(DeviceAgentService, inMemoryTransport(agent.routes, { principal: SERVICE }));
    },
    config,
    work,
    async execute(tool, args) {
      const { finished } = await device.client.execute({ command: await device.grants.start({ tool, args }) });
      if (finished === undefined) throw new Error("the answer holds no end");
      return finished;
    },
    async restart() {
      await agent.close();
      agent = await open();
    },
    async [Symbol.asyncDispose]() {
      await agent.close();
      await rm(work, { recursive: true });
    },
  };
  return device;
}
