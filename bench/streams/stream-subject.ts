/** A way on which many bytes come to one who reads them as they come. */
export interface StreamSubject {
  name: string;
  /** Says in a few words what is between the two ends. */
  what: string;
  /** Sends about so many bytes. Rejects where what came cannot be all there was. */
  transfer(bytes: number): Promise<Transfer>;
}

/** What came of one transfer. */
export interface Transfer {
  /** Bytes that were sent, or printed by a program. */
  sentBytes: number;
  arrivedBytes: number;
  /** Bytes that were left out on the way, as the markers in the output say. */
  leftOutBytes: number;
  elapsedMs: number;
}
