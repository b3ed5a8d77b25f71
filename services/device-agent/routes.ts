import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Envelope } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import {
  DeviceAgentService,
  type Finished,
  type GetExecutionRequest,
  type LinkRequest,
  type LinkResponse,
  type Start,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import type { LinkOpener } from "../../lib/link/opener.ts";
import type { Executions } from "./execute/executions.ts";
import { serveLink } from "./link/link.ts";

/** What the RPCs work on. */
export interface RouteOptions {
  executions: Executions;
  /** The device's signed manifest. */
  manifest: Envelope;
  /** Aborted with NOT_READY when the agent has ended its calls and is about to close its ledger. */
  closed: AbortSignal;
}

/** The device's end of a link, whether it is asked for by the RPC or in the same process. */
export function openLink({ executions, manifest, closed }: RouteOptions): LinkOpener<LinkRequest, LinkResponse> {
  return (requests, left) => serveLink(requests, { executions, manifest, left, closed });
}

/** Registers DeviceAgentService. */
export function deviceRoutes(options: RouteOptions): (router: ConnectRouter) => void {
  const { executions, manifest, closed } = options;
  const service: ServiceImpl<typeof DeviceAgentService> = {
    getManifest: () => ({ manifest }),
    execute: async ({ start }) => ({ finished: await execute(executions, start) }),
    getExecution: (request) => getExecution(executions, closed, request),
    link: (requests, context: HandlerContext) => openLink(options)(requests, context.signal),
  };
  return (router) => router.service(DeviceAgentService, service);
}

/** Runs a call and waits for its end. The caller may leave: the call goes on. */
function execute(executions: Executions, start: Start | undefined): Promise<Finished> {
  if (start === undefined) throw fault(ErrorReason.INVALID_INPUT, { field: "start", rule: "required" });
  return new Promise((resolve, reject) => {
    executions.start(start, {
      output: () => undefined,
      room: () => Promise.resolve(),
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
