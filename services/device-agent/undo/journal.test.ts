import { createSecretKey, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SealError } from "../../../lib/identity/seal.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { type Before, type Change, UNDO_BOUNDS } from "./change.ts";
import { openUndoJournal, type UndoJournalOptions } from "./journal.ts";

const sealer = sealerWith(createSecretKey(randomBytes(32)));

let folder: string;
let now: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-journal-"));
  now = Date.now();
});
afterEach(() => rmSync(folder, { recursive: true }));

const open = (options: Partial<UndoJournalOptions> = {}) =>
  openUndoJournal({ folder, sealer, now: () => now, ...options });

async function keep(journal: ReturnType<typeof open>, callId: string, content: string): Promise<void> {
  const draft = await journal.begin(callId);
  const before: Before = {
    kind: "file",
    sha256: "",
    piece: await draft.keep(Buffer.from(content)),
    mode: 0o600,
    uid: 0,
    gid: 0,
  };
  const change: Change = { kind: "content", path: "/changed/path", before, after: { kind: "missing" } };
  await draft.commit([change]);
}

async function contentOf(journal: ReturnType<typeof open>, callId: string): Promise<string | undefined> {
  await using entry = await journal.find(callId);
  const [change] = entry?.changes ?? [];
  if (entry === undefined || change?.kind !== "content" || change.before.kind !== "file") return undefined;
  return Buffer.from(await entry.content(change.before.piece)).toString();
}

it("keeps entries across a restart, sealed, for the agent's user alone", async () => {
  {
    using journal = open();
    await keep(journal, "a", "the earlier text");
    await keep(journal, "b", "");
  }
  using journal = open();
  expect([await contentOf(journal, "a"), await contentOf(journal, "b")]).toEqual(["the earlier text", ""]);
  for (const name of readdirSync(folder)) {
    expect(readFileSync(join(folder, name), "latin1")).not.toMatch(/the earlier text|kind|content|changed/);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
  }
});

it("is without what was not committed, also after a crash", async () => {
  {
    using journal = open();
    const dropped = await journal.begin("dropped");
    await dropped.keep(Buffer.from("x"));
    await dropped.discard();
    expect(readdirSync(folder)).toEqual([]);
    writeFileSync(join(folder, "cut.draft"), "as a process leaves it that is killed");
  }
  open()[Symbol.dispose]();
  expect(readdirSync(folder)).toEqual([]);
});

it("opens no entry that was changed, and none as another call's", async () => {
  using journal = open();
  await keep(journal, "a", "content");
  const [name = ""] = readdirSync(folder);
  const bytes = readFileSync(join(folder, name));
  for (const at of [3, bytes.length - 30]) {
    const bad = Buffer.from(bytes);
    bad[at] = (bad[at] ?? 0) ^ 1;
    writeFileSync(join(folder, name), bad);
    await expect(contentOf(journal, "a")).rejects.toThrow(SealError);
  }
  await keep(journal, "b", "other");
  const other = readdirSync(folder).find((each) => each !== name) ?? "";
  writeFileSync(join(folder, other), bytes);
  await expect(contentOf(journal, "b")).rejects.toThrow(SealError);
});

it("forgets what is too old, and the oldest where it is too much", async () => {
  const bounds = { ...UNDO_BOUNDS, totalBytes: 1500, ageMs: 10_000 };
  using journal = open({ bounds });
  await keep(journal, "a", "x".repeat(300));
  now += 1000;
  await keep(journal, "b", "x".repeat(300));
  now += 1000;
  await keep(journal, "c", "x".repeat(600));
  expect([await contentOf(journal, "a"), (await contentOf(journal, "c"))?.length]).toEqual([undefined, 600]);
  now += 10_001;
  expect(await journal.find("c")).toBeUndefined();
  using again = open({ bounds });
  expect(await again.find("b")).toBeUndefined();
  expect(readdirSync(folder)).toEqual([]);
});

it("keeps no more for one call than it may", async () => {
  using journal = open({ bounds: { ...UNDO_BOUNDS, callBytes: 10 } });
  const draft = await journal.begin("a");
  await draft.keep(Buffer.alloc(6));
  await expect(draft.keep(Buffer.alloc(6))).rejects.toThrow(/more than 10 bytes/);
  await draft.discard();
  expect(readdirSync(folder)).toEqual([]);
});
