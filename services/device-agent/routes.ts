import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ControlFrame,
  DeviceAgentService,
  type DeviceFrame,
  type ExecuteCommand,
  type ExecutionFinished,
  type GetExecutionRequest,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { missingField } from "../../lib/fault/invalid-input.ts";
import { fromDevice, serveLinkFrames } from "../../lib/link/device-frames.ts";
import { framedEnd } from "../../lib/link/framed.ts";
import type { StreamFactory } from "../../lib/link/stream.ts";
import { pingsKey } from "../../lib/server/context.ts";
import type { Pings } from "../../lib/wire/pings.ts";
import type { Executions } from "./execute/executions.ts";
import { type GrantTrust, serveLink } from "./link/link.ts";
import type { Toolset, Toolsets } from "./toolset.ts";

/** What the RPCs work on. */
export interface RouteOptions {
  executions: Executions;
  /** The keys that sign grants. */
  trust: GrantTrust;
  /** The device's tools and its signed manifest. */
  toolsets: Pick<Toolsets, "onChange"> & { current(): Pick<Toolset, "manifest"> };
  /** Aborted with NOT_READY when the agent has ended its calls and is about to close its ledger. */
  closed: AbortSignal;
  /** Aborted when the agent begins to close: links say that it drains. */
  draining: AbortSignal;
  /** How often a link is checked, in milliseconds. Default 1000. */
  heartbeatMs?: number | undefined;
}

/**
 * The device's end of a link, whether it is asked for by the RPC, in the same process, or the device dialed.
 *
 * @param attachCount how often the device has dialed; 0 where it was dialed.
 */
export function openLink(options: RouteOptions, attachCount = 0n): StreamFactory<ControlFrame, DeviceFrame> {
  const { executions, trust, toolsets, closed } = options;
  return (requests, left) => serveLink(requests, { executions, trust, toolsets, attachCount, left, closed });
}

/** Registers DeviceAgentService. */
export function deviceRoutes(options: RouteOptions): (router: ConnectRouter) => void {
  const { executions, toolsets, closed, draining, heartbeatMs } = options;
  const pace = heartbeatMs === undefined ? {} : { heartbeatMs };
  const linkOver = (pings: Pings | undefined) =>
    serveLinkFrames(framedEnd(openLink(options), fromDevice, { draining, pings, ...pace }));
  const service: ServiceImpl<typeof DeviceAgentService> = {
    getManifest: () => ({ manifest: toolsets.current().manifest.envelope }),
    execute: async ({ command }) => ({ finished: await execute(executions, command) }),
    getExecution: (request) => getExecution(executions, closed, request),
    link: (requests, context: HandlerContext) => linkOver(context.values.get(pingsKey))(requests, context.signal),
  };
  return (router) => router.service(DeviceAgentService, service);
}

/** Runs a call and waits for its end. The caller may leave: the call goes on. */
function execute(executions: Executions, command: ExecuteCommand | undefined): Promise<ExecutionFinished> {
  if (command === undefined) throw missingField("command");
  return new Promise((resolve, reject) => {
    executions.start(command, {
      follows: () => false,
      output: () => undefined,
      room: () => undefined,
      finished: resolve,
      lost: (_, error) => reject(error),
    });
  });
}

async function getExecution(executions: Executions, closed: AbortSignal, { callId }: GetExecutionRequest) {
  closed.throwIfAborted();
  const found = await executions.find(callId);
  if (found !== undefined) return found;
  const message = `the device knows no call ${callId}`;
  throw fault(ErrorReason.NOT_FOUND, { resource: `executions/${callId}` }, { message });
}
