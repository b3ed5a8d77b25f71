import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectError, type ContextValues, createContextKey } from "@connectrpc/connect";
import type { Peer } from "../auth/peer.ts";
import type { Principal } from "../auth/principal.ts";
import type { FollowedCredential } from "./credentials.ts";

/** Whether a caller has left, and what its RPC's signal was aborted with then; a signal is one. */
export interface Departure {
  readonly aborted: boolean;
  readonly reason?: unknown;
}

/** One RPC inside the server. */
export interface Call {
  readonly requestId: string;
  readonly method: DescMethod;
  /** "connect", "grpc" or "grpc-web". */
  readonly protocol: string;
  /** Aborted at the end of the call, and before where the deadline passes, the caller leaves or the server drains. */
  readonly signal: AbortSignal;
  /** Aborted where the caller left, with the reason that `signal` then has; undefined where there is no connection. */
  readonly left: Departure | undefined;
  /** What it was let in with; undefined for a certificate, which its connection ends with, and for a public RPC. */
  credential: FollowedCredential | undefined;
  /** Milliseconds of a monotonic clock. */
  readonly started: number;
  /** Undefined until the gate let it in, and for a public RPC. */
  principal: Principal | undefined;
  /** The interceptors have it; until then an error is the gate's or the codec's. */
  isReached: boolean;
  /** The handler is done; what is left is to write the answer. */
  isSettled: boolean;
  /** The error that the caller gets, once settled. */
  error: ConnectError | undefined;
  /** The end was reported. */
  isEnded: boolean;
  /** Pieces of a JSON body of the Connect protocol, kept to name a field that does not parse. */
  readonly body: Uint8Array[];
}

/** Sees each RPC begin and end; must be quick and must not throw. */
export interface CallObserver {
  begin(call: Call): void;
  /** Once a call, after all of the answer but its last bytes. `call.error` is what the caller got. */
  end(call: Call, ms: number): void;
  /** Something that is not the caller's fault; the caller got only the request id. */
  unexpected(call: Call, cause: unknown): void;
}

const callKey = createContextKey<Call | undefined>(undefined, { description: "reeve call" });
const bodyKey = createContextKey<Uint8Array[] | undefined>(undefined, { description: "reeve request body" });

/** The peer of the connection that an RPC came on, kept by the adapter. */
export const peerKey = createContextKey<Peer | undefined>(undefined, { description: "reeve peer" });

const leftKey = createContextKey<Departure | undefined>(undefined, { description: "reeve caller left" });

/** The RPC that these context values belong to. Throws outside of this package's gate. */
export function callOf(values: ContextValues): Call {
  const call = values.get(callKey);
  if (call === undefined) throw new Error("the RPC did not come through the gate");
  return call;
}

/** Binds a call to its context values, with the body that the adapter keeps, if any. */
export function bindCall(values: ContextValues, call: Omit<Call, "body" | "left">): Call {
  const bound: Call = { ...call, body: values.get(bodyKey) ?? [], left: values.get(leftKey) };
  values.set(callKey, bound);
  return bound;
}

/** Says where the adapter keeps the pieces of the body. */
export function keepBody(values: ContextValues, pieces: Uint8Array[]): void {
  values.set(bodyKey, pieces);
}

/** Says what is aborted when the caller leaves. */
export function followCaller(values: ContextValues, left: Departure): void {
  values.set(leftKey, left);
}

/** Reports the end of a call, once. */
export function endCall(call: Call, observer: CallObserver): void {
  if (call.isEnded) return;
  call.isEnded = true;
  call.credential?.release();
  observer.end(call, performance.now() - call.started);
}
