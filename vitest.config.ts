import { configDefaults, defineConfig } from "vitest/config";
import { testsOnEitherDatabase } from "./services/policy/testing/either-database.ts";
import { fastTests } from "./testkit/fast-tests.ts";

const UNIT = "{lib,services,cli,client,scripts,testkit,bench}/**/*.test.ts";
const POLICY = "services/policy/**/*.test.ts";
const fast = fastTests(import.meta.dirname, UNIT);

export default defineConfig({
  test: {
    maxWorkers: 2,
    exclude: [...configDefaults.exclude, "**/dist/**"],
    // What is to come is waited for longer than it takes on a busy machine: no test of how soon.
    expect: { poll: { timeout: 60_000, interval: 20 } },
    projects: [
      {
        // No process and no server: `npm run test:fast`.
        extends: true,
        test: { name: "fast", include: fast, isolate: false, testTimeout: 30_000 },
      },
      {
        // Files share their modules: nothing in them keeps a state that another test sees, and loading them takes longer
        // than most tests.
        extends: true,
        test: {
          name: "unit",
          include: [UNIT],
          exclude: fast,
          isolate: false,
          testTimeout: 90_000,
          hookTimeout: 90_000,
        },
      },
      {
        // Tests of policy again, as they stand, on PostgreSQL. A file that imported them would have none of those that its
        // worker has loaded before.
        extends: true,
        test: {
          name: "postgres",
          include: testsOnEitherDatabase(import.meta.dirname, POLICY),
          setupFiles: ["services/policy/testing/on-postgres.ts"],
          isolate: false,
          testTimeout: 90_000,
          hookTimeout: 90_000,
        },
      },
      {
        // More than one process: real services and a real nats-server.
        extends: true,
        test: {
          name: "scenarios",
          include: ["test/**/*.test.ts"],
          exclude: ["test/chaos/**"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        // Everything at once, with parts that die. `npm run chaos` makes it larger.
        extends: true,
        test: { name: "chaos", include: ["test/chaos/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 120_000 },
      },
    ],
  },
});
