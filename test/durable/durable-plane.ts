import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { type RestateServer, startRestateServer } from "../../cli/stack/restate-server.ts";
import { RunService } from "../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { ScriptedTurn } from "../../services/agent/scripted-model/script.ts";
import { type ScriptedModel, startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from "../../testkit/control-plane.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";
import { startTcpProxy } from "./restate-proxy.ts";

/** A control plane in processes, an agent service in a process, a real Restate server, and a scripted model. */
export interface DurablePlane {
  plane: ControlPlane;
  restate: RestateServer;
  /** The worker. */
  worker: ServiceProcess;
  /** Clients as the operator. */
  operator: Caller;
  runs: ReturnType<typeof runsOf>;
  /** The same service with another token. */
  runsWith(token: string): ReturnType<typeof runsOf>;
  tokenOf(role: Role): string;
  /** A model for what follows, at the address that the worker knows. */
  playModel(turns: readonly ScriptedTurn[]): Promise<ScriptedModel>;
  close(): Promise<void>;
}

function runsOf(url: string, token: string) {
  return createClient(RunService, createServiceTransport({ baseUrl: url, token }));
}

/** What it consists of. Default: one of each in cleartext, with SQLite. */
export interface DurablePlaneOptions extends ControlPlaneOptions {
  /** Where the worker reaches the registry. Default: as callers do. */
  registryUrl?(plane: ControlPlane): Promise<string>;
}

/** Starts it. With `postgres` the worker keeps its runs there too. */
export async function startDurablePlane(options: DurablePlaneOptions = {}): Promise<DurablePlane> {
  await using parts = new AsyncDisposableStack();
  const plane = parts.adopt(await startControlPlane(options), (one) => one.close());
  const logger = createLogger({ service: "test", level: process.env.TEST_LOG === undefined ? "silent" : "debug" });
  const folder = join(plane.folder, "restate");
  const restate = parts.adopt(await startRestateServer({ folder, logger }), (one) => one.close());
  const ingress = parts.adopt(await startTcpProxy(restate.ingress), (one) => one.close());
  const admin = parts.adopt(await startTcpProxy(restate.admin), (one) => one.close());
  const [port = 0, workerPort = 0, modelPort = 0] = await freePorts(3);
  const tokens = createTokenFile(join(plane.folder, "tokens.json"));
  const tokenOf = (role: Role) => tokens.issueToken({ name: `test-${role}`, roles: [role] }).token;
  const caFile = join(plane.folder, "ca.crt");
  if (plane.ca !== undefined) await writeFile(caFile, plane.ca);
  const database = await options.postgres?.newDatabase();
  const worker = parts.adopt(
    await startServiceProcess("agent", port, {
      REEVE_TOKENS_FILE: join(plane.folder, "tokens.json"),
      REEVE_LOG_LEVEL: "debug",
      REEVE_AGENT_PORT: String(port),
      REEVE_AGENT_STATE_DIR: join(plane.folder, "agent"),
      REEVE_AGENT_TOKEN: tokenOf(Role.AGENT),
      REEVE_TRIGGER_TOKEN: tokenOf(Role.TRIGGER),
      REEVE_REGISTRY_URL: (await options.registryUrl?.(plane)) ?? plane.registry.url,
      ...(plane.ca !== undefined && { REEVE_CA_FILE: caFile }),
      ...(database !== undefined && { REEVE_AGENT_DATABASE_URL: database }),
      REEVE_RESTATE_INGRESS_URL: ingress.url,
      REEVE_RESTATE_ADMIN_URL: admin.url,
      REEVE_RESTATE_IDENTITY_KEYS: restate.identityKey,
      REEVE_AGENT_WORKER_PORT: String(workerPort),
      ANTHROPIC_API_KEY: "scripted",
      ANTHROPIC_BASE_URL: `http://127.0.0.1:${modelPort}`,
    }),
    (one) => one.stop(),
  );
  let model: ScriptedModel | undefined;
  parts.defer(async () => model?.close());
  const ready = parts.move();
  return {
    plane,
    restate,
    worker,
    operator: callerOf(plane, plane.tokens.operator, plane.ca),
    runs: runsOf(worker.url, plane.tokens.operator),
    runsWith: (token) => runsOf(worker.url, token),
    tokenOf,
    async playModel(turns) {
      await model?.close();
      model = await startScriptedModel({ turns, port: modelPort });
      return model;
    },
    close: () => ready.disposeAsync(),
  };
}
