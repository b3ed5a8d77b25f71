/** What may be analyzed. What is larger is refused whole: neither asked about nor run, since no person can read it either. */
export const LIMITS = {
  /** Of a shell text, in bytes of UTF-8. */
  bytes: 8 * 1024,
  /** Of an argument list, in UTF-16 code units: a longer one is asked about, with no look at whether it only looks. */
  argv: 64 * 1024,
  /** Commands in one text, those of substitutions and nested scripts too. */
  commands: 256,
  /** How deep lists, substitutions and compound commands may be nested. */
  nesting: 24,
  /** How often a command may run another: sudo in env in sh -c. */
  wrappers: 8,
  /** How many nested scripts may be inside each other: `sh -c "bash -c …"`. */
  interpreters: 4,
  /** Commands that the block scan follows, with loops and functions written out. */
  steps: 1024,
  /** Words that the braces of one word may stand for. */
  words: 256,
} as const;

/** Thrown inside the analysis where a limit is passed; the analysis returns it as the verdict "reject". */
export class TooComplex extends Error {
  override name = "TooComplex";
}
