import { ConnectError, type HandlerContext } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Authenticate, type Principal, requireRole } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import type { Access, AccessLookup } from "./access.ts";
import { rememberAccess } from "./access.ts";
import { bindCall, type Call, type CallObserver, endCall } from "./call.ts";
import { principalKey } from "./context.ts";
import { chooseRequestId, REQUEST_ID_HEADER } from "./request-id.ts";
import { toFault, typeInPlace } from "./to-fault.ts";

/** What the gate needs. */
export interface GateOptions {
  authenticate: Authenticate;
  access: AccessLookup;
  /** False: nothing but public RPCs is let in. */
  ready: () => boolean;
  observer: CallObserver;
  newRequestId: () => string;
}

/** Runs once for each RPC, when its headers are there and before any of its body is read. */
export type Gate = (context: HandlerContext) => void | Promise<void>;

/**
 * Gives the RPC its request id, then lets in who may call it: authentication first, then the RPC's own access rule, then
 * readiness. Throws UNAUTHENTICATED, ROLE_REQUIRED or NOT_READY.
 */
export function createGate(options: GateOptions): Gate {
  const accessOf = rememberAccess(options.access);
  return (context) => {
    const call = beginCall(context, options);
    const rule = accessOf(context.method);
    if (rule.public) return undefined;
    try {
      const found = options.authenticate(context.requestHeader.get("authorization") ?? undefined);
      if (!(found instanceof Promise)) return letIn(context, call, rule, found, options);
      return found.then(
        (principal) => letIn(context, call, rule, principal, options),
        (cause: unknown) => refuse(call, cause, options),
      );
    } catch (cause) {
      return refuse(call, cause, options);
    }
  };
}

function beginCall(context: HandlerContext, { observer, newRequestId }: GateOptions): Call {
  const requestId = chooseRequestId(context.requestHeader.get(REQUEST_ID_HEADER), newRequestId);
  context.responseHeader.set(REQUEST_ID_HEADER, requestId);
  const call = bindCall(context.values, {
    requestId,
    method: context.method,
    protocol: context.protocolName,
    signal: context.signal,
    started: performance.now(),
    principal: undefined,
    isReached: false,
    isSettled: false,
    error: undefined,
    isEnded: false,
  });
  observer.begin(call);
  context.signal.addEventListener("abort", () => onAbort(call, observer), { once: true });
  return call;
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

function letIn(
  context: HandlerContext,
  call: Call,
  rule: Access,
  found: Principal | undefined,
  options: GateOptions,
): void {
  call.principal = requireRole(found, rule.roles);
  context.values.set(principalKey, found);
  if (!options.ready()) {
    throw fault(ErrorReason.NOT_READY, {}, { message: "the service is starting or draining" });
  }
}

function refuse(call: Call, cause: unknown, { observer }: GateOptions): never {
  throw toFault(cause, call, observer);
}
