import { globSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repositoryRoot } from "../../../scripts/repository-root.ts";
import { readAgentFile } from "./load-agents.ts";

const FILES = globSync("examples/agents/*.yaml", { cwd: repositoryRoot });

test.each(FILES)("%s is valid, and nothing in it is left out", async (file) => {
  const { agent, problems, warnings } = await readAgentFile(join(repositoryRoot, file), {});
  expect([problems, warnings]).toEqual([[], []]);
  expect(agent?.devices).not.toEqual([]);
});

test("there are examples", () => expect(FILES.length).toBeGreaterThan(1));
