import type { X509Certificate } from "node:crypto";
import { configSettings } from "../../gen/settings/settings.ts";

/** Who a certificate stands for: a service of the control plane, or a device. */
export type Identity = (
  | { readonly kind: "service"; readonly name: string }
  | { readonly kind: "device"; readonly id: string }
) & {
  /** Whose names these are; another trust domain's are unknown here. */
  readonly trustDomain: string;
};

/** The trust domain where none is configured. */
export const DEFAULT_TRUST_DOMAIN = configSettings.trustDomain.default;

// Narrower than SPIFFE allows: what has one spelling only can be compared as text.
const FORM = /^spiffe:\/\/([a-z0-9][a-z0-9.-]{0,253})\/(?:service\/([a-z][a-z0-9-]{0,62})|device\/(dev-[0-9a-f]{16}))$/;

/** The identity as a URI, such as "spiffe://reeve/service/policy". */
export function formatIdentity(identity: Identity): string {
  const path = identity.kind === "service" ? `service/${identity.name}` : `device/${identity.id}`;
  return `spiffe://${identity.trustDomain}/${path}`;
}

/** The identity of a URI; undefined for anything that `formatIdentity` does not write. */
export function parseIdentity(uri: string): Identity | undefined {
  const [, trustDomain, name, id] = FORM.exec(uri) ?? [];
  if (trustDomain === undefined) return undefined;
  if (name !== undefined) return { kind: "service", name, trustDomain };
  return id === undefined ? undefined : { kind: "device", id, trustDomain };
}

/** True where the two name the same. */
export function isSameIdentity(one: Identity, other: Identity): boolean {
  return formatIdentity(one) === formatIdentity(other);
}

/**
 * The identity in a certificate's only URI name (SPIFFE X509-SVID: there is exactly one). Undefined where there is none,
 * more than one, or one of another shape. Says nothing of whether the certificate can be trusted.
 */
export function identityOf({ subjectAltName }: Pick<X509Certificate, "subjectAltName">): Identity | undefined {
  // Node puts a name into quotes where its text could be taken for the start of another name; ours never need them.
  if (subjectAltName === undefined || subjectAltName.includes('"')) return undefined;
  const uris = subjectAltName.split(", ").filter((name) => name.startsWith("URI:"));
  return uris.length === 1 && uris[0] !== undefined ? parseIdentity(uris[0].slice("URI:".length)) : undefined;
}
