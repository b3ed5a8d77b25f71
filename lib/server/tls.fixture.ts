import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Peer } from "../auth/peer.ts";
import { faultDetail } from "../fault/fault.ts";
import { device, service } from "../identity/testdata/certificates.ts";
import type { ServiceTransportOptions } from "../rpc-client/transport.ts";
import type { Access } from "./access.ts";
import { peerKey } from "./call.ts";
import type { principalOf } from "./context.ts";

export const REGISTRY = service("registry");
export const POLICY = service("policy");
export const DEVICE_ID = "dev-0123456789abcdef";
export const DEVICE = device(DEVICE_ID);
export const REVOKED = device("dev-00000000000000ff");
export const DAY_MS = 24 * 3_600_000;

/** Every way to call over TLS. */
export const tlsWays: Pick<ServiceTransportOptions, "protocol" | "httpVersion">[] = [
  { protocol: "connect", httpVersion: "1.1" },
  { protocol: "connect", httpVersion: "2" },
  { protocol: "grpc", httpVersion: "2" },
];

/** Lets in who has one of the roles. */
export function only(...roles: Role[]): Access {
  return { public: false, roles };
}

/** Whose certificate a handler is called with. */
export function peerIn({ values }: Parameters<typeof principalOf>[0]): Peer | undefined {
  return values.get(peerKey);
}

export interface Refusal {
  code: Code;
  reason?: ErrorReason;
  why?: string;
}

/** What a call that should fail failed with. */
export async function refusal(action: Promise<unknown>): Promise<Refusal> {
  const error = ConnectError.from(
    await action.then(
      () => "it was let in",
      (cause: unknown) => cause,
    ),
  );
  const detail = faultDetail(error);
  if (detail === undefined) return { code: error.code };
  return { code: error.code, reason: detail.reason, ...(detail.metadata.why && { why: detail.metadata.why }) };
}

/** The refusal of a certificate. */
export function refused(why: string): Refusal {
  return { code: Code.Unauthenticated, reason: ErrorReason.IDENTITY_REFUSED, why };
}

export const ROLE: Refusal = { code: Code.PermissionDenied, reason: ErrorReason.ROLE_REQUIRED };
export const NO_PRINCIPAL: Refusal = { code: Code.Unauthenticated, reason: ErrorReason.UNAUTHENTICATED };
