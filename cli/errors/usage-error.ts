/** What was typed cannot be done as it stands. Ends the command with exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** What would help, a line each. */
  readonly hints: readonly string[];

  constructor(message: string, hints: readonly string[] = [], options?: ErrorOptions) {
    super(message, options);
    this.hints = hints;
  }
}
