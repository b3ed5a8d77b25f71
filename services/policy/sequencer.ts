import type { Lease } from "../../lib/store/lease.ts";

/**
 * The right to build the log's tree and to sign its head: one replica has it at a time. The order of the records is not
 * its business: the transaction's lock gives each its index.
 */
export type Sequencer = Lease;

/** The sequencer of a database that one process has for itself. */
export const ALONE: Sequencer = {
  held: true,
  token: 0,
  check: async () => {},
  onChange: () => () => {},
  close: async () => {},
};
