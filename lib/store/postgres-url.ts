/** Where a PostgreSQL database is. */
export interface PostgresAddress {
  /** The URL as the driver takes it: without `schema` and `options`. Holds the password. */
  connectionString: string;
  /** The schema that all tables are in; undefined for the server's default, which is "public". */
  schema: string | undefined;
  /** Settings of each session, in the form of `postgres -c name=value`. */
  options: string;
  /** The URL without its password and its parameters, for messages. */
  label: string;
}

/** As PostgreSQL keeps names that are not quoted, so that this one needs no quotes. */
const SCHEMA_NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/**
 * Reads "postgres://user:password@host:5432/database?schema=name&sslmode=verify-full". `schema` is ours; all other
 * parameters are for the driver (https://www.postgresql.org/docs/current/libpq-connect.html). Throws for anything else,
 * without repeating it: it may hold a password.
 */
export function parsePostgresUrl(text: string): PostgresAddress {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^postgres(?:ql)?:$/.test(url.protocol)) {
    throw new Error("the database URL must look like postgres://user:password@host:5432/database");
  }
  const label = `${url.protocol}//${url.username && `${url.username}@`}${url.host}${url.pathname}`;
  const schema = url.searchParams.get("schema") ?? undefined;
  if (schema !== undefined && (!SCHEMA_NAME.test(schema) || schema.startsWith("pg_"))) {
    throw new Error(
      `the schema in the URL of ${label} must be up to 63 of a-z, 0-9 and _, with no digit and no pg_ in front`,
    );
  }
  const options = [url.searchParams.get("options"), schema && `-c search_path=${schema}`].filter(Boolean).join(" ");
  url.searchParams.delete("schema");
  url.searchParams.delete("options");
  return { connectionString: url.href, schema, options, label: schema ? `${label} (schema ${schema})` : label };
}
