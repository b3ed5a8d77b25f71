import { type ContextKey, type ContextValues, createContextKey } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Principal } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import type { Pings } from "../wire/pings.ts";

/** Who called; undefined in a public RPC. */
export const principalKey: ContextKey<Principal | undefined> = createContextKey<Principal | undefined>(undefined, {
  description: "reeve principal",
});

/** Whether the RPC came by a socket that only programs of the machine's owner can open. */
export const localKey: ContextKey<boolean> = createContextKey(false, { description: "reeve local" });

/** The pings of the connection that a stream came on; undefined for what cannot last, and over HTTP/1.1. */
export const pingsKey: ContextKey<Pings | undefined> = createContextKey<Pings | undefined>(undefined, {
  description: "reeve pings",
});

/** Who called, inside a handler. Throws UNAUTHENTICATED in a public RPC. */
export function principalOf(context: { readonly values: ContextValues }): Principal {
  const principal = context.values.get(principalKey);
  if (principal === undefined) throw fault(ErrorReason.UNAUTHENTICATED);
  return principal;
}
