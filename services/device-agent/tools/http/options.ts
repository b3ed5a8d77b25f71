import type { Resolve } from "../../hosts/resolve-host.ts";

/** How requests to other machines are set up. */
export interface ConnectOptions {
  /** The addresses of a name. Default: as the system resolves it. */
  resolve?: Resolve;
  /** The authorities that https addresses are trusted by, PEM. Default: those of Node. */
  ca?: string;
}
