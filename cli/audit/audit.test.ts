import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { runInFake } from "../testing/fake-context.ts";

let stack: TestStack;
let callId: string;
beforeAll(async () => {
  stack = await startTestStack();
  const { stdout } = await reeve("call", "this", "exec", "--json", "--", "true");
  callId = JSON.parse(stdout).id;
});
afterAll(() => stack.close());

function reeve(...argv: string[]) {
  return runInFake(argv, { env: stack.operator });
}

describe("reeve audit", () => {
  it("lists what happened to a call", async () => {
    const { stdout } = await reeve("audit", "list", "--call", callId, "--json");
    const events = JSON.parse(stdout).records.map(({ record }: { record: object }) => Object.keys(record));
    expect(events.map((keys: string[]) => keys.at(-1))).toEqual(["decided", "outcome"]);
    expect((await reeve("audit", "list", "--call", callId)).stdout).toMatch(
      /decided: permit by .*\n.*ended: succeeded after \d+ ms +exec true on this /,
    );
  });

  it("verifies the log of a running service, from its file and as the service returns it", async () => {
    const local = await reeve("audit", "verify");
    expect(local).toMatchObject({ code: 0, stdout: expect.stringContaining("The audit log verifies.") });
    expect(local.stdout).toContain("reeve.db");
    const remote = await reeve("audit", "verify", "--remote", "--json");
    expect(JSON.parse(remote.stdout)).toMatchObject({ ok: true, findings: [], open: [] });
  });

  it("proves a record in one document that is checked offline", async () => {
    const bundle = await reeve("audit", "prove", "--call", callId, "--json");
    const file = join(stack.workFolder, "bundle.json");
    await writeFile(file, bundle.stdout);
    expect(await reeve("audit", "verify-proof", file)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^The proof holds: record \d+ of \d+ in reeve\/[0-9a-f]{16}: ended: succeeded/),
    });
    const forged = { ...JSON.parse(bundle.stdout), leaf: Buffer.from("another record").toString("base64") };
    await writeFile(file, JSON.stringify(forged));
    const refused = await reeve("audit", "verify-proof", file, "--json");
    expect(refused.code).toBe(10);
    expect(JSON.parse(refused.stdout)).toMatchObject({ ok: false });
  });

  it("proves a record as text, with the record's bytes beside it", async () => {
    const [proof, leaf] = [join(stack.workFolder, "p.txt"), join(stack.workFolder, "p.leaf")];
    await writeFile(proof, (await reeve("audit", "prove", "0", "--leaf", leaf)).stdout);
    const key = (await readFile(join(stack.dataFolder, "policy", "checkpoint.vkey"), "utf8")).trim();
    expect((await reeve("audit", "verify-proof", proof, "--leaf", leaf, "--key", key)).code).toBe(0);
    expect((await reeve("audit", "verify-proof", proof)).code).toBe(2);
    const other = key.replace(/^reeve\/./, (start) => (start.endsWith("0") ? "reeve/1" : "reeve/0"));
    expect((await reeve("audit", "verify-proof", proof, "--leaf", leaf, "--key", other)).code).not.toBe(0);
  });

  it.each([
    [["audit", "prove"], "say which record"],
    [["audit", "prove", "999999"], "999999"],
    [["audit", "prove", "-1"], "It must be a whole number from 0."],
    [["audit", "prove", "--call", "none"], "no record about none"],
    [["audit", "verify", "--db", "/nowhere"], "there is no file /nowhere"],
    [["audit", "verify", "--key", "nonsense"], "nonsense is neither a verifier key nor a file"],
    [["audit", "verify", "--witness", "/nowhere"], "/nowhere cannot be read"],
    [["audit", "verify-proof", "/nowhere"], "/nowhere cannot be read"],
  ])("%j: %s", async (argv, message) => {
    expect(await reeve(...argv)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});

describe("a log that was changed", () => {
  async function tampered(sql: string): Promise<string> {
    await stack.stop();
    const [from, to] = [join(stack.dataFolder, "reeve.db"), join(stack.workFolder, "tampered.db")];
    await copyFile(from, to);
    const db = openSqlite(to);
    db.run(sql, []);
    db.close();
    return to;
  }

  it.each([
    ["update records set leaf = x'00' where idx = 1", "flipped"],
    ["delete from records where idx = 1", "missing"],
    ["delete from records where idx = (select max(idx) from records)", "truncated"],
  ])("%s: exit code 10, and it is named: %s", async (sql, kind) => {
    const key = join(stack.dataFolder, "policy", "checkpoint.vkey");
    const db = await tampered(sql);
    const text = await reeve("audit", "verify", "--db", db, "--key", key);
    expect(text).toMatchObject({ code: 10, stdout: expect.stringContaining(`\n${kind}  `) });
    const json = await reeve("audit", "verify", "--db", db, "--key", key, "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({
      ok: false,
      findings: expect.arrayContaining([expect.objectContaining({ kind })]),
    });
  });

  it("that is no database is named too", async () => {
    const file = join(stack.workFolder, "no.db");
    await writeFile(file, "this is no database, but it is long enough to look like one".repeat(100));
    const result = await reeve(
      "audit",
      "verify",
      "--db",
      file,
      "--key",
      join(stack.dataFolder, "policy", "checkpoint.vkey"),
    );
    expect(result).toMatchObject({ code: 10, stderr: expect.stringContaining("cannot be read as policy's database") });
  });
});
