import { afterAll, beforeAll, expect, test } from "vitest";
import { type PostgresServer, queryPostgres, startPostgresServer } from "../../testkit/postgres-server.ts";
import { runInFake } from "../testing/fake-context.ts";

let postgres: PostgresServer;
beforeAll(async () => {
  postgres = await startPostgresServer();
});
afterAll(() => postgres.close());

test.each([
  ["registry", "REEVE_REGISTRY_DATABASE_URL", "calls"],
  ["policy", "REEVE_POLICY_DATABASE_URL", "records"],
])("reeve migrate %s makes the tables, and changes nothing the second time", async (service, variable, table) => {
  const url = await postgres.newDatabase();
  for (const _ of [1, 2]) {
    const { code, stderr } = await runInFake(["migrate", service], { env: { [variable]: `${url}?schema=own` } });
    expect([code, stderr]).toEqual([0, expect.stringContaining("up to date")]);
  }
  expect(await queryPostgres(url, "select 1 from own.kysely_migration")).not.toEqual([]);
  expect(await queryPostgres(url, `select 1 from own.${table}`)).toEqual([]);
});

test("reeve migrate says which variable is missing", async () => {
  const { code, stderr } = await runInFake(["migrate", "policy"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("REEVE_POLICY_DATABASE_URL")]);
});
