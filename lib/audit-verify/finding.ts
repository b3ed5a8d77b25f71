/** What can be wrong with a log. */
export type FindingKind =
  /** A record's bytes and its hash do not belong together. */
  | "flipped"
  /** Records are missing, though later ones exist. */
  | "missing"
  /** The log ends before what was signed. */
  | "truncated"
  /** A checkpoint is not signed by the log's key, or is filed under another size. */
  | "bad_checkpoint"
  /** Nothing was ever signed. */
  | "no_checkpoint"
  /** The records are not those that a checkpoint was signed for. */
  | "fork"
  /** A stored node of the tree is not the hash of what is under it. */
  | "bad_node"
  /** Bytes that are no record, or a file that cannot be read to its end. */
  | "unreadable"
  /** A call ran without a permit for it. */
  | "orphan"
  /** A permit names an approval that was never given. */
  | "unapproved"
  /** Two permits have the same grant. */
  | "duplicate_grant";

/** One thing that is wrong with a log. */
export interface Finding {
  kind: FindingKind;
  /** The record it is about, where it is about one; the first one of a range. */
  index?: number;
  /** For a person. */
  message: string;
}

/** A permit without the end of its call: it may be running, or its end was never recorded. Not wrong by itself. */
export interface OpenPermit {
  /** The index of the permit's record. */
  index: number;
  callId: string;
  grantId: string;
}
