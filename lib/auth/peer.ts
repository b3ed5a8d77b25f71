import type { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { certificatesOf, isFromAuthority } from "../identity/chain.ts";
import { formatIdentity, type Identity, identityOf } from "../identity/spiffe.ts";

/** What can be wrong with a certificate by itself. */
export type PeerProblem = "expired" | "not_yet" | "foreign" | "malformed";

/** Why a certificate is refused: ERROR_REASON_IDENTITY_REFUSED's "why". */
export type RefusedWhy = PeerProblem | "revoked" | "cloned" | "role";

/** Who is at the other end of a TLS connection, by the certificate that was shown. */
export interface Peer {
  /** Undefined where the certificate has any problem: then nothing that it says is believed. */
  readonly identity: Identity | undefined;
  /** SHA-256 of the certificate's DER bytes, 64 lower-case hexadecimal digits. */
  readonly fingerprint: string;
  /** The certificate's serial number, lower-case hexadecimal. */
  readonly serial: string;
  /** Until when the certificate is good, in milliseconds since the epoch; a connection may outlive it. */
  readonly notAfterMs?: number;
  /** Whom the certificate names, whether or not that can be believed; only for messages. */
  readonly claimed?: string;
  /** Left out: there is none. */
  readonly problem?: PeerProblem;
}

/** A peer whose certificate is sound. */
export type KnownPeer = Peer & { readonly identity: Identity };

// A connection's certificate never changes, and reading it costs more than an RPC's whole gate.
const known = new WeakMap<TLSSocket, Peer>();

/** The peer at the other end of a connection that was let in by `admitPeer`; undefined where it showed no certificate. */
export function peerOfSocket(socket: TLSSocket): Peer | undefined {
  return known.get(socket);
}

/**
 * Reads who is at the other end of a new connection, once its handshake is done.
 *
 * @param authorities those that the handshake trusted, PEM.
 */
export function admitPeer(socket: TLSSocket, authorities: string): Peer | undefined {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  const problem = socket.authorized ? undefined : problemOf(socket.authorizationError ?? "unknown");
  const peer = readPeer(certificate, proven(problem, certificate, authorities));
  known.set(socket, peer);
  return peer;
}

/**
 * OpenSSL names only the last thing that it finds wrong, and looks at times after signatures: what no authority here signed may
 * be called expired as well, and says nothing then about an identity that was ever admitted.
 */
function proven(
  problem: PeerProblem | undefined,
  certificate: X509Certificate,
  authorities: string,
): PeerProblem | undefined {
  if (problem === undefined || problem === "foreign") return problem;
  return isFromAuthority(certificate, certificatesOf(authorities)) ? problem : "foreign";
}

function readPeer(certificate: X509Certificate, found: PeerProblem | undefined): Peer {
  const named = identityOf(certificate);
  const problem = found ?? (named === undefined ? "malformed" : undefined);
  return {
    identity: problem === undefined ? named : undefined,
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    serial: certificate.serialNumber.toLowerCase(),
    notAfterMs: Date.parse(certificate.validTo),
    claimed: named === undefined ? "" : formatIdentity(named),
    ...(problem !== undefined && { problem }),
  };
}

/** What OpenSSL's name for a failed verification means here. */
export function problemOf(refused: Error | string): PeerProblem {
  const code = typeof refused === "string" ? refused : "code" in refused ? String(refused.code) : refused.message;
  if (code === "CERT_HAS_EXPIRED") return "expired";
  if (code === "CERT_NOT_YET_VALID") return "not_yet";
  if (code === "INVALID_PURPOSE") return "malformed";
  return "foreign";
}

/** Throws IDENTITY_REFUSED for a peer with a problem, and for one whose certificate expired while it was connected. */
export function requireSoundPeer(peer: Peer, now: number): asserts peer is KnownPeer {
  const { identity, problem, claimed, notAfterMs = Number.POSITIVE_INFINITY } = peer;
  if (problem !== undefined) throw identityRefused(problem, claimed ?? identity);
  if (now > notAfterMs) throw identityRefused("expired", claimed ?? identity);
  if (identity === undefined) throw identityRefused("malformed", claimed);
}

const MESSAGES: Readonly<Record<RefusedWhy, string>> = {
  expired: "the certificate has expired; get a new one",
  not_yet: "the certificate is not valid yet; set the clocks by NTP",
  foreign: "the certificate is not from an authority that is trusted here",
  malformed: "the certificate does not name one service or device",
  revoked: "the certificate was revoked; enroll again",
  cloned: "the certificate's key is in use in two places; enroll again",
  role: "the certificate is for another role",
};

/** The fault for a certificate that is refused. */
export function identityRefused(
  why: RefusedWhy,
  identity: Identity | string | undefined,
  options: { message?: string; cause?: unknown } = {},
): ConnectError {
  const name = typeof identity === "object" ? formatIdentity(identity) : (identity ?? "");
  const message = options.message ?? MESSAGES[why];
  const shown = name === "" ? message : `${message} (${name})`;
  return fault(ErrorReason.IDENTITY_REFUSED, { why, identity: name }, { message: shown, cause: options.cause });
}
