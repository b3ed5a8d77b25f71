import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Identity } from "../identity/spiffe.ts";
import { identityRefused, type KnownPeer, type Peer, requireSoundPeer } from "./peer.ts";
import type { Authenticate, Principal } from "./principal.ts";

export interface CertificateOptions {
  /** Whose names count; a certificate of another trust domain is refused as foreign. */
  trustDomain: string;
  /** The services that may call, such as ["registry"]; any other is refused. Default: every service. */
  acceptServices?: readonly string[];
  /** Asked once for each RPC; throws the fault that refuses the peer, such as IDENTITY_REFUSED for a revoked one. */
  check?: (peer: KnownPeer) => void | Promise<void>;
  /** Milliseconds since the epoch. Default Date.now. */
  now?: () => number;
}

/**
 * Makes the certificate that a caller shows its principal: "service/registry" with the role service, or the device's id
 * with the role device. Undefined where none was shown. Throws IDENTITY_REFUSED for one that is not good here.
 */
export function authenticateByCertificate(options: CertificateOptions): Authenticate {
  const { check, now = Date.now } = options;
  const principals = new WeakMap<Peer, Principal>();
  const accept = (peer: KnownPeer): Principal => {
    let principal = principals.get(peer);
    if (principal === undefined) {
      principal = principalOfIdentity(peer.identity, options);
      principals.set(peer, principal);
    }
    return principal;
  };
  return (_authorization, peer) => {
    if (peer === undefined) return undefined;
    requireSoundPeer(peer, now());
    const sound: KnownPeer = peer;
    const principal = accept(sound);
    const checked = check?.(sound);
    return checked === undefined ? principal : checked.then(() => principal);
  };
}

function principalOfIdentity(identity: Identity, { trustDomain, acceptServices }: CertificateOptions): Principal {
  if (identity.trustDomain !== trustDomain) throw identityRefused("foreign", identity);
  if (identity.kind === "device") {
    return Object.freeze({ id: identity.id, kind: "device", roles: Object.freeze([Role.DEVICE]), name: identity.id });
  }
  if (acceptServices !== undefined && !acceptServices.includes(identity.name)) throw identityRefused("role", identity);
  const id = `service/${identity.name}`;
  return Object.freeze({ id, kind: "service", roles: Object.freeze([Role.SERVICE]), name: identity.name });
}

/**
 * Asks one after the other; the first that knows the caller decides, and the rest is not asked. With certificates first,
 * a token beside a certificate adds nothing: a thief of one of the two never gets the rights of both.
 */
export function firstThatKnows(...authenticators: readonly Authenticate[]): Authenticate {
  const ask = (
    from: number,
    authorization: string | undefined,
    peer: Peer | undefined,
  ): Principal | undefined | Promise<Principal | undefined> => {
    for (const [index, authenticate] of authenticators.entries()) {
      if (index < from) continue;
      const found = authenticate(authorization, peer);
      if (found instanceof Promise) return found.then((known) => known ?? ask(index + 1, authorization, peer));
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return (authorization, peer) => ask(0, authorization, peer);
}
