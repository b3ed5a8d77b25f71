import type * as X509 from "@peculiar/x509";

let loaded: Promise<typeof X509> | undefined;

/**
 * The library that writes certificates and requests. Loaded when it is first needed, because it takes 25 MB and a
 * tenth of a second, and most processes only read certificates, which node:crypto does.
 */
export function x509(): Promise<typeof X509> {
  loaded ??= import("./reflect.ts").then(() => import("@peculiar/x509"));
  return loaded;
}
