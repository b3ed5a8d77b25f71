import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{lib,services,cli,client,scripts,testkit,bench}/**/*.test.ts"],
          testTimeout: 90_000,
          hookTimeout: 30_000,
        },
      },
      {
        // More than one process: real services and a real nats-server.
        extends: true,
        test: {
          name: "scenarios",
          include: ["test/**/*.test.ts"],
          exclude: ["**/node_modules/**", "test/chaos/**"],
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
    exclude: ["**/node_modules/**", "**/dist/**"],
  },
});
