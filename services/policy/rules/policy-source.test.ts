import { rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { removeTestFolders, startTestPolicy, testFolder } from "../testing/test-policy.ts";
import { openPolicySource, type PolicySource } from "./policy-source.ts";

afterAll(removeTestFolders);

const policy = (id: string) => `version: 1\nrules:\n  - { id: ${id}, effect: allow, message: m }\n`;

interface Watched {
  source: PolicySource;
  path: string;
  records: string[];
  /** What recording does next. */
  failing: { now: boolean };
}

async function watch(text: string): Promise<Watched> {
  const path = join(await testFolder(), "policy.yaml");
  await writeFile(path, text);
  const records: string[] = [];
  const failing = { now: false };
  const source = await openPolicySource({
    path,
    lookup: toolByName,
    pollMs: 0,
    now: () => 1000,
    onError: () => {},
    record: async (_, problem) => {
      if (failing.now) throw new Error("the disk is full");
      records.push(problem === "" ? "loaded" : `refused: ${problem}`);
    },
  });
  return { source, path, records, failing };
}

const ruleId = (source: PolicySource) => source.current().policy.rules[0]?.id;

it("takes a new content into force", async () => {
  const { source, path, records } = await watch(policy("first"));
  await writeFile(path, policy("second"));
  await source.check();
  expect(ruleId(source)).toBe("second");
  expect(records).toEqual(["loaded", "loaded"]);
});

it("does nothing where only the file's time changes", async () => {
  const { source, path, records } = await watch(policy("first"));
  await utimes(path, new Date(), new Date());
  await source.check();
  expect(records).toEqual(["loaded"]);
});

it("keeps the old policy when the new file is refused, and says why until a good one comes", async () => {
  const { source, path, records } = await watch(policy("first"));
  await writeFile(path, "version: 1\nrules: nothing");
  await source.check();
  expect(ruleId(source)).toBe("first");
  expect(source.current().refused).toContain("rules must be a list");
  expect(records[1]).toContain("refused: line 2: rules must be a list");
  await writeFile(path, policy("third"));
  await source.check();
  expect(ruleId(source)).toBe("third");
  expect(source.current().refused).toBe("");
});

it("keeps the old policy when the file is gone", async () => {
  const { source, path } = await watch(policy("first"));
  await rm(path);
  await source.check();
  expect(ruleId(source)).toBe("first");
  expect(source.current().refused).toContain("unreadable");
});

it("takes nothing into force that could not be recorded, and tries again", async () => {
  const { source, path, failing } = await watch(policy("first"));
  failing.now = true;
  await writeFile(path, policy("second"));
  await expect(source.check()).rejects.toThrow("the disk is full");
  expect(ruleId(source)).toBe("first");
  failing.now = false;
  await source.check();
  expect(ruleId(source)).toBe("second");
});

it("starts with no bad file: the service does not come up, and the log says why", async () => {
  const folder = await testFolder();
  const policyFile = join(folder, "policy.yaml");
  await writeFile(policyFile, "version: 1\nrules: []");
  const stateDir = join(folder, "state");
  await expect(startTestPolicy({ policyFile, stateDir })).rejects.toThrow("rules must hold at least one rule");
  const later = await startTestPolicy({ stateDir });
  const { entries } = await later.audit.listRecords({});
  expect(entries[0]?.record?.event.value).toMatchObject({
    accepted: false,
    problem: expect.stringContaining("rules must"),
  });
  await later.stop();
});
