import type { ServerResponse } from "node:http";
import { HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { requireSoundPeer } from "../auth/peer.ts";
import type { Authenticate, Principal } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import type { Logger } from "../log/log.ts";
import { type NodeRequest, type NodeResponse, onClose, type PlainHandler, pathOf, peerOfRequest } from "./adapter.ts";
import { departure, isDeparture } from "./departure.ts";
import { faultToJson, plainFault } from "./fault-json.ts";
import type { HealthState } from "./health-state.ts";
import type { Metrics } from "./metrics.ts";
import { type Fallback, readBody, sendJson } from "./plain-http.ts";
import { chooseRequestId, REQUEST_ID_HEADER } from "./request-id.ts";
import type { StrangerLog } from "./stranger-log.ts";

/** What the plain HTTP side of a server needs. */
export interface PlainOptions {
  authenticate: Authenticate;
  fallback: Fallback | undefined;
  health: HealthState;
  /** What /metrics shows to anyone; undefined where that path is nobody's. */
  metrics: Metrics | undefined;
  logger: Logger;
  newRequestId: () => string;
  /** Bounds the lines about callers that nobody knows. */
  strangers: StrangerLog;
  /** Aborted when the server is done waiting for a drain. */
  shutdownSignal: AbortSignal;
}

/** Serves /healthz, and /metrics where there are any, to anyone, and everything else through the fallback, logged like an RPC. */
export function createPlainHandler(options: PlainOptions): PlainHandler {
  const { health, metrics } = options;
  return (request, response) => {
    const path = pathOf(request.url);
    if (path === "/healthz") {
      sendHealth(response, health);
      return undefined;
    }
    if (path === "/metrics" && metrics !== undefined) return sendMetrics(response, metrics.registry);
    return serve(request, response, path, options);
  };
}

function sendHealth(response: NodeResponse, health: HealthState): void {
  const isServing = health.get("") === Status.SERVING;
  sendJson(response, isServing ? 200 : 503, { status: isServing ? "SERVING" : "NOT_SERVING" });
}

async function sendMetrics(response: NodeResponse, registry: Metrics["registry"]): Promise<void> {
  try {
    const text = await registry.metrics();
    response.setHeader("content-type", registry.contentType);
    response.end(text);
  } catch {
    response.statusCode = 500;
    response.end();
  }
}

async function serve(request: NodeRequest, response: NodeResponse, path: string, options: PlainOptions): Promise<void> {
  const started = performance.now();
  const requestId = chooseRequestId(singleHeader(request, REQUEST_ID_HEADER), options.newRequestId);
  response.setHeader(REQUEST_ID_HEADER, requestId);
  const { logger, strangers } = options;
  const shownPath = path.slice(0, 200);
  let actor: string | undefined;
  const sendFault = (error: unknown): void => {
    const cause = isDeparture(error) && isGone(request) ? departure(error) : error;
    const told = plainFault(cause, requestId, (err) =>
      logger.error({ request_id: requestId, path: shownPath, err }, "unexpected error"),
    );
    if (response.headersSent) return void response.destroy();
    const { status, body } = faultToJson(told);
    sendJson(response, status, body);
  };
  // At once: a caller may be gone before its request is read.
  onClose(response, () => {
    if (!logger.isLevelEnabled("info") || (actor === undefined && !strangers.admit())) return;
    const ms = Math.round((performance.now() - started) * 100) / 100;
    logger.info(
      {
        request_id: requestId,
        method: request.method?.slice(0, 20),
        path: shownPath,
        actor,
        status: response.statusCode,
        ms,
      },
      "http",
    );
  });
  try {
    const principal = await whoAsks(request, options);
    actor = principal?.id;
    await callFallback({ request, response, path, principal, requestId, sendFault }, options);
  } catch (error) {
    sendFault(error);
  }
}

interface Exchange {
  request: NodeRequest;
  response: NodeResponse;
  path: string;
  principal: Principal | undefined;
  requestId: string;
  sendFault: (error: unknown) => void;
}

async function callFallback(exchange: Exchange, { fallback, health, shutdownSignal }: PlainOptions): Promise<void> {
  const { request, response, path, principal, requestId, sendFault } = exchange;
  if (health.get("") !== Status.SERVING) {
    throw fault(ErrorReason.NOT_READY, {}, { message: "the service is starting or draining" });
  }
  const isServed = await fallback?.(
    {
      method: request.method ?? "",
      path,
      // Not by URL, which takes "//[" for a host.
      query: new URLSearchParams(request.url?.slice(path.length)),
      headers: request.headers,
      principal,
      requestId,
      signal: AbortSignal.any([closeSignal(response), shutdownSignal]),
      readBody: (maxBytes) => readBody(request, response, maxBytes),
    },
    { json: (status, value) => sendJson(response, status, value), fault: sendFault, raw: response as ServerResponse },
  );
  if (isServed !== true)
    throw fault(ErrorReason.NOT_FOUND, { resource: path.slice(0, 200) }, { message: "no such path" });
}

/**
 * Neither header nor certificate: nobody. A header that is not valid: UNAUTHENTICATED, so that a typing mistake does not
 * look like a guest. A certificate with a problem: IDENTITY_REFUSED.
 */
async function whoAsks(request: NodeRequest, { authenticate }: PlainOptions): Promise<Principal | undefined> {
  const { authorization } = request.headers;
  const peer = peerOfRequest(request);
  if (authorization === undefined && peer === undefined) return undefined;
  if (peer !== undefined) requireSoundPeer(peer, Date.now());
  const principal = await authenticate(authorization, peer);
  if (principal === undefined && authorization !== undefined)
    throw fault(ErrorReason.UNAUTHENTICATED, {}, { message: "the bearer token is not valid" });
  return principal;
}

function closeSignal(response: NodeResponse): AbortSignal {
  const controller = new AbortController();
  onClose(response, () => controller.abort());
  return controller.signal;
}

/** True where nobody is there any more to get an answer. */
function isGone(request: NodeRequest): boolean {
  return request.errored !== null || ("stream" in request ? request.stream.destroyed : request.socket.destroyed);
}

function singleHeader(request: NodeRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
