import { base64Decode } from "@bufbuild/protobuf/wire";
import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Peer, requireSoundPeer } from "../auth/peer.ts";
import { type Authenticate, type Principal, requireRole } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import type { Access, AccessLookup } from "./access.ts";
import { rememberAccess } from "./access.ts";
import { bindCall, type Call, type CallObserver, endCall, peerKey } from "./call.ts";
import { type CallerConnection, connectionKey } from "./connections.ts";
import { principalKey } from "./context.ts";
import { type CredentialWatch, createCredentialWatch } from "./credentials.ts";
import { departure } from "./departure.ts";
import type { PublicCalls } from "./public-calls.ts";
import { chooseRequestId, REQUEST_ID_HEADER } from "./request-id.ts";
import { ENDED } from "./running.ts";
import { toFault, typeInPlace } from "./to-fault.ts";

export interface GateOptions {
  authenticate: Authenticate;
  access: AccessLookup;
  /** False: nothing but public RPCs is let in. */
  ready: () => boolean;
  observer: CallObserver;
  newRequestId: () => string;
  /** Bounds the public RPCs. */
  publicCalls: PublicCalls;
  /** Who is at the other end of every call, where there are no connections. Default: the connection's peer. */
  peer?: Peer | undefined;
}

/** What the gate sees of an RPC: connect's context is one. */
export interface Entrance
  extends Pick<HandlerContext, "method" | "protocolName" | "requestMethod" | "url" | "signal" | "values"> {
  readonly requestHeader: { get(name: string): string | null };
  readonly responseHeader: { set(name: typeof REQUEST_ID_HEADER, value: string): void };
}

/** Runs once for each RPC, when its headers have come and before any of its body is read. */
export type Gate = (context: Entrance) => void | Promise<void>;

/**
 * Gives the RPC its request id, then lets in who may call it: the connection's certificate first, then authentication, the
 * RPC's own access rule and readiness. An invalid certificate is refused before any token is looked at. Throws
 * IDENTITY_REFUSED, UNAUTHENTICATED, ROLE_REQUIRED, NOT_READY, RATE_LIMITED for a public RPC, and what `authenticate`
 * throws. An RPC that goes on when its token is revoked or expires is aborted with TOKEN_REFUSED.
 */
export function createGate(options: GateOptions): Gate {
  const accessOf = rememberAccess(options.access);
  const credentials = createCredentialWatch(options.authenticate);
  const enter = (context: Entrance, call: Call, rule: Access, found: Principal | undefined): void => {
    letIn(context, call, rule, found, options);
    if (found !== undefined) followCredential(context, call, { rule, principal: found }, credentials);
  };
  return (context) => {
    const call = beginCall(context, options);
    if (context.signal.aborted) return endAtOnce(call, options);
    if (options.peer !== undefined) context.values.set(peerKey, options.peer);
    const rule = accessOf(context.method);
    try {
      assertQuery(context);
      if (rule.public) return enterPublic(context, options);
      const peer = context.values.get(peerKey);
      if (peer !== undefined) requireSoundPeer(peer, Date.now());
      const found = options.authenticate(context.requestHeader.get("authorization") ?? undefined, peer);
      if (!(found instanceof Promise)) return enter(context, call, rule, found);
      return found.then(
        (principal) => enter(context, call, rule, principal),
        (cause: unknown) => refuse(call, cause, options),
      );
    } catch (cause) {
      return refuse(call, cause, options);
    }
  };
}

function beginCall(context: Entrance, { observer, newRequestId }: GateOptions): Call {
  const requestId = chooseRequestId(context.requestHeader.get(REQUEST_ID_HEADER), newRequestId);
  context.responseHeader.set(REQUEST_ID_HEADER, requestId);
  const call = bindCall(context.values, {
    requestId,
    method: context.method,
    protocol: context.protocolName,
    signal: context.signal,
    started: performance.now(),
    principal: undefined,
    credential: undefined,
    isReached: false,
    isSettled: false,
    error: undefined,
    isEnded: false,
  });
  observer.begin(call);
  context.signal.addEventListener("abort", () => onAbort(call, observer), { once: true });
  followErrors(context as Controlled, call, observer);
  return call;
}

/** As connect makes it: it says with `abort` which error it is about to write. */
export type Controlled = Entrance & { abort(reason?: unknown): void };

/**
 * A signal reports its first abort only. Where that was the deadline, an error of the codec that comes later would be
 * written as connect made it.
 */
function followErrors(context: Controlled, call: Call, observer: CallObserver): void {
  const { abort } = context;
  context.abort = (reason = ENDED) => {
    if (context.signal.aborted && reason !== call.error && reason instanceof ConnectError) {
      typeInPlace(reason, call, observer);
    }
    abort(reason);
  };
}

/** A call whose deadline was over, or whose caller had left, before it began: nothing of it is read. */
function endAtOnce(call: Call, { observer }: GateOptions): never {
  call.error = departure(call.signal.reason);
  endCall(call, observer);
  throw call.error;
}

/** connect decodes the message of a GET with a function that throws what it then reports as an error of the server. */
function assertQuery({ requestMethod, url }: Entrance): void {
  if (requestMethod !== "GET") return;
  const query = new URL(url).searchParams;
  if (query.get("base64") !== "1") return;
  try {
    base64Decode(query.get("message") ?? "");
  } catch {
    const message = "message: is no base64";
    throw fault(ErrorReason.INVALID_INPUT, { field: "message", rule: "base64" }, { message });
  }
}

/**
 * Connect aborts a call's signal at its very end, with the error it is about to write if there is one, and earlier where
 * the deadline passes or the caller leaves. It is the only place that sees an error of the codec: messages are parsed
 * before the interceptors run and written after them.
 */
function onAbort(call: Call, observer: CallObserver): void {
  if (call.isReached && !call.isSettled) return; // left early: the interceptor reports the end when the handler is done
  const reason: unknown = call.signal.reason;
  if (reason instanceof ConnectError) call.error = typeInPlace(reason, call, observer);
  else if (!call.isReached) call.error = toFault(reason, call, observer);
  endCall(call, observer);
}

function enterPublic({ values, signal }: Entrance, { publicCalls }: GateOptions): undefined {
  const connection = values.get(connectionKey);
  if (connection === undefined) return;
  const leave = publicCalls.enter(connection);
  // Connect aborts the signal at the very end of each call.
  signal.addEventListener("abort", leave, { once: true });
}

function letIn(context: Entrance, call: Call, rule: Access, found: Principal | undefined, options: GateOptions): void {
  if (found !== undefined) know(context.values.get(connectionKey));
  call.principal = requireRole(found, rule.roles);
  context.values.set(principalKey, found);
  if (!options.ready()) {
    throw fault(ErrorReason.NOT_READY, {}, { message: "the service is starting or draining" });
  }
}

/** What runs ends when its token would not be let in any more. A certificate's RPCs end with its connection. */
function followCredential(
  context: Entrance,
  call: Call,
  { rule, principal }: { rule: Access; principal: Principal },
  credentials: CredentialWatch,
): void {
  const authorization = context.requestHeader.get("authorization");
  if (authorization === null || context.values.get(peerKey) !== undefined || call.isEnded) return;
  call.credential = credentials.follow({
    authorization,
    principal,
    authorize: (now) => requireRole(now, rule.roles),
    onRefused: (refusal) => abortCall(context, refusal),
  });
}

/** Aborts the signal that a handler has. Connect's own contexts can; their public type does not say so. */
function abortCall(context: Entrance, reason: Error): void {
  const { abort } = context as Entrance & { abort?: (reason: unknown) => void };
  abort?.(reason);
}

function know(connection: CallerConnection | undefined): void {
  if (connection?.isKnown === false) connection.know();
}

function refuse(call: Call, cause: unknown, { observer }: GateOptions): never {
  throw toFault(cause, call, observer);
}
