import type { X509Certificate } from "node:crypto";
import { authorityId } from "../../../lib/identity/authority.ts";
import { certificatesOf } from "../../../lib/identity/chain.ts";
import type { TlsMaterial, TlsSource } from "../../../lib/identity/tls-source.ts";
import type { Authorities } from "./authorities.ts";

/**
 * What the registry's server shows and trusts: its files, and besides their authorities those of the devices, as they
 * are now. The authority that signed its certificate is shown too, because a device that joins knows it by its hash only.
 */
export function trustDevices(own: TlsSource, authorities: Pick<Authorities, "trusted" | "onChange">): TlsSource {
  // Each connection asks, and to find who signed costs a millisecond.
  let of: TlsMaterial | undefined;
  let cert = "";
  return {
    current() {
      const material = own.current();
      if (of !== material) {
        cert = withSigner(material);
        of = material;
      }
      return { ...material, cert, ca: [material.ca, ...authorities.trusted()].join("\n") };
    },
    onChange(listener) {
      const stops = [own.onChange(listener), authorities.onChange(listener)];
      return () => {
        for (const stop of stops) stop();
      };
    },
  };
}

/** The authority that devices know the registry by: the last one upwards from its certificate. */
export function serverAuthorityId(material: TlsMaterial): string {
  const top = chainUp(material).at(-1);
  if (top === undefined) throw new Error("none of the trusted authorities has signed the registry's own certificate");
  return authorityId(top.toString());
}

function withSigner(material: TlsMaterial): string {
  const shown = new Set(certificatesOf(material.cert).map(({ fingerprint256 }) => fingerprint256));
  const missing = chainUp(material).filter(({ fingerprint256 }) => !shown.has(fingerprint256));
  return [material.cert, ...missing.map(String)].join("\n");
}

/** The certificates above the server's own one, the nearest first. */
function chainUp({ cert, ca }: TlsMaterial): X509Certificate[] {
  const [leaf, ...above] = certificatesOf(cert);
  const known = [...above, ...certificatesOf(ca)];
  const chain: X509Certificate[] = [];
  let lowest = leaf;
  while (lowest !== undefined && chain.length < known.length) {
    const child: X509Certificate = lowest;
    const parent = known.find((one) => one !== child && child.checkIssued(one) && child.verify(one.publicKey));
    if (parent === undefined || parent.fingerprint256 === child.fingerprint256) break;
    chain.push(parent);
    lowest = parent;
  }
  return chain;
}
