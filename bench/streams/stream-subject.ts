/** A way on which many bytes come to one who reads them as they come. */
export interface StreamSubject {
  name: string;
  /** Says in a few words what is between the two ends. */
  what: string;
  /** Sends about so many bytes. Rejects where not all of them came. */
  transfer(bytes: number): Promise<Transfer>;
}

/** What came of one transfer. */
export interface Transfer {
  /** Bytes that arrived, which are all. */
  bytes: number;
  elapsedMs: number;
}
