import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Peer } from "../auth/peer.ts";
import type { Principal } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import { callOf, peerKey } from "./call.ts";

/** Who called; undefined in a public RPC. */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined, {
  description: "reeve principal",
});

/** Who called, inside a handler. Throws UNAUTHENTICATED in a public RPC. */
export function principalOf(context: { readonly values: ContextValues }): Principal {
  const principal = context.values.get(principalKey);
  if (principal === undefined) throw fault(ErrorReason.UNAUTHENTICATED);
  return principal;
}

/**
 * Who is at the other end of the connection, inside a handler. Undefined on a cleartext port and where no certificate was
 * shown. In a public RPC the peer may have a problem: only elsewhere the gate has refused it.
 */
export function peerOf(context: { readonly values: ContextValues }): Peer | undefined {
  return context.values.get(peerKey);
}

/** The id under which this request is logged, inside a handler. */
export function requestIdOf(context: { readonly values: ContextValues }): string {
  return callOf(context.values).requestId;
}
