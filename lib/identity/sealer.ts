import { type SealingKey, seal, unseal } from "./seal.ts";

/** Keeps bytes unreadable for readers of the database. */
export interface Sealer {
  /** @param name what it is, such as "call/call-1f3c/asked": has to be given again to open it. */
  seal(name: string, bytes: Uint8Array): Uint8Array;
  /** Throws SealError where it was sealed with another key or as something else, or was changed. */
  open(name: string, sealed: Uint8Array): Uint8Array;
}

/** A sealer with a key, which every replica needs. */
export function sealerWith(key: SealingKey): Sealer {
  return {
    seal: (name, bytes) => seal(key, bytes, name),
    open: (name, sealed) => unseal(key, sealed, name),
  };
}
