import { expect, test } from "vitest";
import { parsePostgresUrl } from "./postgres-url.ts";

test("takes the schema out and leaves the driver its own", () => {
  const url = "postgres://me:secret@db.example:6432/reeve?schema=policy&sslmode=verify-full&options=-c%20geqo%3Doff";
  expect(parsePostgresUrl(url)).toEqual({
    connectionString: "postgres://me:secret@db.example:6432/reeve?sslmode=verify-full",
    schema: "policy",
    options: "-c geqo=off -c search_path=policy",
    label: "postgres://me@db.example:6432/reeve (schema policy)",
  });
});

test("takes a URL without any of that", () => {
  expect(parsePostgresUrl("postgresql://db/reeve")).toEqual({
    connectionString: "postgresql://db/reeve",
    schema: undefined,
    options: "",
    label: "postgresql://db/reeve",
  });
});

test.each(["", "A", "1a", "a-b", "a b", 'a"b', "a;b", "a,b", "pg_a", "ä", "x".repeat(64)])(
  "refuses the schema %j",
  (schema) => {
    const url = `postgres://me:secret@db/reeve?schema=${encodeURIComponent(schema)}`;
    expect(() => parsePostgresUrl(url)).toThrow("the schema in the URL of postgres://me@db/reeve must be");
  },
);

test.each(["secret", "mysql://me:secret@db/reeve", "postgres://me:secret@db:port/reeve"])(
  "refuses %j without repeating it",
  (url) => {
    expect(() => parsePostgresUrl(url)).toThrow(
      /^the database URL must look like postgres:\/\/user:password@host:5432\/database$/,
    );
  },
);
