import { expect, it } from "vitest";
import { signCheckpoint, verifyCheckpointByAny } from "./checkpoint.ts";
import { generateSigningKey } from "./keys.ts";
import { formatVkey, noteKeyOf, verifyNote } from "./note.ts";
import { formatVkeys, parseVkeys } from "./vkeys.ts";

const keys = [generateSigningKey(), generateSigningKey()] as const;
const [older, newer] = [noteKeyOf("reeve/log", keys[0]), noteKeyOf("reeve/log", keys[1])];
const stranger = noteKeyOf("reeve/log", generateSigningKey());
const head = { origin: "reeve/log", size: 3, root: new Uint8Array(32) };

it("keys of one log are read as they were written, whatever space is around them", () => {
  const text = formatVkeys([newer, older]);
  expect(text.split("\n")).toHaveLength(2);
  expect(parseVkeys(text)?.map(formatVkey)).toEqual([formatVkey(newer), formatVkey(older)]);
  expect(parseVkeys(`\n  ${formatVkey(newer)}  \r\n\n${formatVkey(older)}\n`)).toHaveLength(2);
});

it.each([
  ["nothing", ""],
  ["a line that is no key", `${formatVkey(older)}\nnonsense`],
  ["keys of two logs", `${formatVkey(older)}\n${formatVkey(noteKeyOf("other", keys[1]))}`],
])("%s is no set of keys", (_, text) => {
  expect(parseVkeys(text)).toBeUndefined();
});

it("a head that several keys signed verifies with each of them alone, and the result names the signer", () => {
  const note = signCheckpoint(head, ...keys);
  expect(note.match(/^— reeve\/log /gm)).toHaveLength(2);
  for (const key of [older, newer]) expect(verifyNote(note, key).ok).toBe(true);
  const both = verifyCheckpointByAny(note, [newer, older, stranger]);
  expect(both.ok && both.signers).toEqual([newer, older]);
});

it("a head that one of the keys signed is enough, and one that none signed is refused by its nearest reason", () => {
  const note = signCheckpoint(head, keys[0]);
  const one = verifyCheckpointByAny(note, [newer, older]);
  expect(one.ok && one.signers).toEqual([older]);
  expect(verifyCheckpointByAny(note, [newer, stranger])).toEqual({ ok: false, kind: "unknown_key" });
  const changed = note.replace("\n3\n", "\n4\n");
  expect(verifyCheckpointByAny(changed, [stranger, older])).toEqual({ ok: false, kind: "bad_signature" });
  expect(verifyCheckpointByAny(note, [])).toEqual({ ok: false, kind: "unknown_key" });
});
