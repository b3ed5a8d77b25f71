import { type CreateTableNode, type DataTypeNode, SqliteQueryCompiler } from "kysely";

/** What a column type of PostgreSQL is called in a STRICT table of SQLite. */
const COLUMN_TYPES: Record<string, string> = {
  text: "text",
  varchar: "text",
  integer: "integer",
  bigint: "integer",
  bigserial: "integer",
  "double precision": "real",
  bytea: "blob",
};

/**
 * Compiles Kysely's queries for SQLite so that migrations can be written once, in PostgreSQL's types: every table
 * becomes STRICT, and a type that has no exact equal here is refused. `bigserial` with `primaryKey()` is SQLite's row
 * number: it rises, and the number of the newest row may come again after that row was deleted.
 */
export class PortableSqliteCompiler extends SqliteQueryCompiler {
  protected override visitCreateTable(node: CreateTableNode): void {
    super.visitCreateTable(node);
    if (!node.selectQuery) this.append(" strict");
  }

  protected override visitDataType(node: DataTypeNode): void {
    const type = COLUMN_TYPES[node.dataType.replace(/\(\d+\)$/, "")];
    if (type === undefined) {
      throw new Error(
        `column type ${node.dataType} is not portable; use one of ${Object.keys(COLUMN_TYPES).join(", ")}`,
      );
    }
    this.append(type);
  }
}
