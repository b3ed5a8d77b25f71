import type * as X509 from "@peculiar/x509";

let loaded: Promise<typeof X509> | undefined;

/**
 * The library that writes certificates and requests. Loaded when it is first needed, because it takes 25 MB and a
 * tenth of a second, and most processes only read certificates, which node:crypto does.
 */
export function x509(): Promise<typeof X509> {
  if (loaded === undefined) {
    // tsyringe, which @peculiar/x509 finds its parts with, asks for "reflect-metadata" before it loads. None of x509's
    // classes has metadata, so the true answer to both questions is that it has none.
    const reflect: typeof Reflect & { getMetadata?: () => undefined; getOwnMetadata?: () => undefined } = Reflect;
    reflect.getMetadata ??= () => undefined;
    reflect.getOwnMetadata ??= () => undefined;
    loaded = import("@peculiar/x509");
  }
  return loaded;
}
