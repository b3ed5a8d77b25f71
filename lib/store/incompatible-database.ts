/** The database was written by an earlier version, whose data this one cannot read. Nothing in it was changed. */
export class IncompatibleDatabase extends Error {
  override readonly name = "IncompatibleDatabase";
  readonly remedy: string;

  constructor(label: string, remedy: string) {
    super(`the database ${label} was written by an earlier, incompatible version of Reeve`);
    this.remedy = remedy;
  }
}
