import type { ServerResponse } from "node:http";
import { Code } from "@connectrpc/connect";
import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { requireSoundPeer } from "../auth/peer.ts";
import type { Authenticate, Principal } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import type { Logger } from "../log/log.ts";
import { type NodeRequest, type NodeResponse, onClose, type PlainHandler, pathOf, peerOfRequest } from "./adapter.ts";
import type { Connections } from "./connections.ts";
import { type CredentialWatch, createCredentialWatch, type FollowedCredential } from "./credentials.ts";
import { departure, isDeparture } from "./departure.ts";
import { faultToJson, plainFault } from "./fault-json.ts";
import type { HealthState } from "./health-state.ts";
import type { Metrics } from "./metrics.ts";
import { type Challenge, type Fallback, readBody, sendJson } from "./plain-http.ts";
import { isGone } from "./read-body.ts";
import { chooseRequestId, REQUEST_ID_HEADER } from "./request-id.ts";
import { ENDED, type Running, runningUntil } from "./running.ts";
import type { StrangerLog } from "./stranger-log.ts";

export interface PlainOptions {
  authenticate: Authenticate;
  fallback: Fallback | undefined;
  challenge: Challenge | undefined;
  /** A connection whose caller is authenticated is known from then on. */
  connections: Connections;
  health: HealthState;
  /** False: /livez, /readyz and /healthz do not exist. Default true. */
  showHealth?: boolean;
  /** What /metrics shows to anyone; undefined where that path does not exist. */
  metrics: Metrics | undefined;
  logger: Logger;
  newRequestId: () => string;
  /** Receives the status of each answer, health and metrics apart; 499 where the caller left before it. */
  onAnswered?: (status: number) => void;
  /** Bounds the log lines about unknown callers. */
  strangers: StrangerLog;
  /** Aborted when the server is done waiting for a drain. */
  shutdownSignal: AbortSignal;
}

/**
 * Serves to anyone /livez (the process answers), /readyz (it takes requests), /healthz (and its dependencies are available) and
 * /metrics where there are any; everything else through the fallback, logged like an RPC.
 */
export function createPlainHandler(options: PlainOptions): PlainHandler {
  const { health, metrics, showHealth = true } = options;
  const credentials = createCredentialWatch(options.authenticate);
  const running = runningUntil(options.shutdownSignal);
  return (request, response) => {
    const path = pathOf(request.url);
    if (showHealth) {
      if (path === "/healthz") return sendHealth(response, health);
      if (path === "/readyz") return sendStatus(response, health.isReady);
      if (path === "/livez") return sendStatus(response, true);
    }
    if (path === "/metrics" && metrics !== undefined) return sendMetrics(response, metrics.registry);
    return serve(request, response, path, { ...options, credentials, running });
  };
}

/** Whether all is well, and if not, which dependencies are unavailable. */
function sendHealth(response: NodeResponse, health: HealthState): undefined {
  const { unavailable } = health;
  return sendStatus(response, health.get("") === Status.SERVING, unavailable.length === 0 ? {} : { unavailable });
}

function sendStatus(
  response: NodeResponse,
  isServing: boolean,
  more: { unavailable?: readonly string[] } = {},
): undefined {
  sendJson(response, isServing ? 200 : 503, { status: isServing ? "SERVING" : "NOT_SERVING", ...more });
  return undefined;
}

/** Texts that are being made: anybody may ask, and one costs milliseconds of the process. */
const rendering = new WeakMap<Metrics["registry"], Promise<string>>();

/** The metrics of now. Those who ask while they are gathered get the same text. */
function metricsText(registry: Metrics["registry"]): Promise<string> {
  let text = rendering.get(registry);
  if (text === undefined) {
    text = registry.metrics().finally(() => rendering.delete(registry));
    rendering.set(registry, text);
  }
  return text;
}

async function sendMetrics(response: NodeResponse, registry: Metrics["registry"]): Promise<void> {
  try {
    const text = await metricsText(registry);
    response.setHeader("content-type", registry.contentType);
    response.end(text);
  } catch {
    response.statusCode = 500;
    response.end();
  }
}

/** What stands for a status where none was sent, because the caller left. */
const GONE = codeToHttpStatus(Code.Canceled);

async function serve(request: NodeRequest, response: NodeResponse, path: string, options: ServeOptions): Promise<void> {
  const started = performance.now();
  const requestId = chooseRequestId(singleHeader(request, REQUEST_ID_HEADER), options.newRequestId);
  response.setHeader(REQUEST_ID_HEADER, requestId);
  const { logger, strangers } = options;
  const shownPath = path.slice(0, 200);
  let actor: string | undefined;
  const sendFault = (error: unknown): void => {
    const cause = isDeparture(error) && isGone(request) ? departure(error) : error;
    const answer = plainFault(cause, requestId, (err) =>
      logger.error({ request_id: requestId, path: shownPath, err }, "unexpected error"),
    );
    if (response.headersSent) return void response.destroy();
    const { status, body } = faultToJson(answer);
    const challenge =
      status === 401 ? options.challenge?.(path, request.headers.authorization !== undefined) : undefined;
    if (challenge !== undefined) response.setHeader("www-authenticate", challenge);
    sendJson(response, status, body);
  };
  // At once: a caller may be gone before its request is read.
  onClose(response, () => {
    const status = response.headersSent ? response.statusCode : GONE;
    options.onAnswered?.(status);
    if (!logger.isLevelEnabled("info") || (actor === undefined && !strangers.admit())) return;
    const ms = Math.round((performance.now() - started) * 100) / 100;
    logger.info(
      {
        request_id: requestId,
        method: request.method?.slice(0, 20),
        path: shownPath,
        actor,
        status,
        ms,
      },
      "http",
    );
  });
  try {
    const principal = await principalOfRequest(request, options);
    actor = principal?.id;
    await callFallback({ request, response, path, principal, requestId, sendFault }, options);
  } catch (error) {
    sendFault(error);
  }
}

interface ServeOptions extends PlainOptions {
  /** Ends a wait when its caller's token would not be let in any more. */
  credentials: CredentialWatch;
  running: Running;
}

interface Exchange {
  request: NodeRequest;
  response: NodeResponse;
  path: string;
  principal: Principal | undefined;
  requestId: string;
  sendFault: (error: unknown) => void;
}

async function callFallback(
  exchange: Exchange,
  { fallback, health, running, credentials }: ServeOptions,
): Promise<void> {
  const { request, response, path, principal, requestId, sendFault } = exchange;
  if (!health.isReady) {
    throw fault(ErrorReason.NOT_READY, {}, { message: "the service is starting or draining" });
  }
  const stop = new AbortController();
  running.add(stop);
  onClose(response, () => stop.abort(response.writableEnded ? ENDED : undefined));
  const credential = followCredential(exchange, credentials, stop);
  const served = async () =>
    fallback?.(
      {
        method: request.method ?? "",
        path,
        // Not by URL, which takes "//[" for a host.
        get query() {
          return new URLSearchParams(request.url?.slice(path.length));
        },
        headers: request.headers,
        principal,
        requestId,
        signal: stop.signal,
        readBody: (maxBytes) => readBody(request, maxBytes),
      },
      {
        // A wait that ended because the caller's token is refused by now has no answer for it.
        json: (status, value) =>
          credential?.refusal === undefined ? sendJson(response, status, value) : sendFault(credential.refusal),
        fault: (error) => sendFault(credential?.refusal ?? error),
        raw: response as ServerResponse,
      },
    );
  const isServed = await served().finally(() => {
    running.delete(stop);
    credential?.release();
  });
  if (isServed !== true)
    throw fault(ErrorReason.NOT_FOUND, { resource: path.slice(0, 200) }, { message: "no such path" });
}

/** Undefined where nothing was shown, or a certificate, which the connection ends with. */
function followCredential(
  { request, principal }: Exchange,
  credentials: CredentialWatch,
  stop: AbortController,
): FollowedCredential | undefined {
  const { authorization } = request.headers;
  if (authorization === undefined || principal === undefined || peerOfRequest(request) !== undefined) return undefined;
  return credentials.follow({
    authorization,
    principal,
    // A path's own code asks for the roles that it needs, once.
    authorize: () => undefined,
    onRefused: (refusal) => stop.abort(refusal),
  });
}

/**
 * Neither header nor certificate: no principal. A header that is not valid: UNAUTHENTICATED, so that a typing mistake does not
 * look like a guest. A certificate with a problem: IDENTITY_REFUSED.
 */
async function principalOfRequest(
  request: NodeRequest,
  { authenticate, connections }: PlainOptions,
): Promise<Principal | undefined> {
  const { authorization } = request.headers;
  const peer = peerOfRequest(request);
  if (authorization === undefined && peer === undefined) return undefined;
  if (peer !== undefined) requireSoundPeer(peer, Date.now());
  const principal = await authenticate(authorization, peer);
  if (principal === undefined && authorization !== undefined)
    throw fault(ErrorReason.UNAUTHENTICATED, {}, { message: "the bearer token is not valid" });
  if (principal !== undefined) connections.of(request)?.know();
  return principal;
}

function singleHeader(request: NodeRequest, name: string): string | undefined {
  const value = request.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
