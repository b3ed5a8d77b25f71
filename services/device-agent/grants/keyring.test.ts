import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { signKeyring } from "../../../lib/sign/keyring.ts";
import { generateSigningKey, type SigningKey } from "../../../lib/sign/keys.ts";
import { CHECKPOINT_TYPE, GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import { builtInTools } from "../../../lib/toolschema/catalog-file.ts";
import { createTestGrants } from "../testing/grants.ts";
import { openTestAgent } from "../testing/test-agent.ts";
import { openTestLink } from "../testing/test-link.ts";
import { openGrantKeyring } from "./keyring.ts";

let folder = "";
let file = "";

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-keyring-"));
  file = join(folder, "grant-keys.json");
});
afterEach(async () => rm(folder, { recursive: true }));

const [first, second, third, stranger] = Array.from({ length: 4 }, generateSigningKey) as [
  SigningKey,
  SigningKey,
  SigningKey,
  SigningKey,
];

/** The signed keyrings of two whole rotations, from the first key to the third. */
const chain = [
  ring(1n, first, [first]),
  ring(2n, first, [first, second]),
  ring(3n, second, [second, first]),
  ring(4n, second, [second]),
  ring(5n, second, [second, third]),
  ring(6n, third, [third, second]),
  ring(7n, third, [third]),
];

function ring(version: bigint, signer: SigningKey, keys: readonly SigningKey[], statementType: string = GRANT_TYPE) {
  return signKeyring(signer, { version, statementType, keys });
}

function trustedOf(keyring: { find(keyId: string): unknown }): SigningKey[] {
  return [first, second, third, stranger].filter(({ keyId }) => keyring.find(keyId) !== undefined);
}

describe("a device's keyring", () => {
  it("trusts what it was pinned to, before it knows of anything newer", async () => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    expect(keyring.version).toBe(0n);
    expect(trustedOf(keyring)).toEqual([first]);
  });

  it("follows step by step, also where it was offline for two rotations", async () => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    expect(await keyring.trust(chain[0])).toBe(true);
    const results = await Promise.all(chain.slice(1).map((envelope) => keyring.trust(envelope)));
    expect(results).toEqual(Array(6).fill(true));
    expect(keyring.version).toBe(7n);
    expect(trustedOf(keyring)).toEqual([third]);
  });

  it("goes on after a restart where it stopped, whatever it was pinned to first", async () => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    for (const envelope of chain) await keyring.trust(envelope);
    const again = await openGrantKeyring({ file, pins: [first] });
    expect(again.version).toBe(7n);
    expect(trustedOf(again)).toEqual([third]);
  });

  it("is begun anew where the owner pins a key that the file does not know", async () => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    for (const envelope of chain) await keyring.trust(envelope);
    const again = await openGrantKeyring({ file, pins: [stranger] });
    expect(again.version).toBe(0n);
    expect(trustedOf(again)).toEqual([stranger]);
    const known = await openGrantKeyring({ file, pins: [third, second] });
    expect(trustedOf(known)).toEqual([third]);
  });

  it("starts at the version that its pins are from: a key that had retired by then never comes back", async () => {
    const keyring = await openGrantKeyring({ file, pins: [second], pinnedVersion: 4n });
    expect(keyring.version).toBe(4n);
    // Signed by the pinned key itself, and by one that is not trusted here: old is old.
    for (const old of [chain[2], chain[0], ring(4n, second, [second, first])])
      expect(await keyring.trust(old)).toBe(false);
    expect(trustedOf(keyring)).toEqual([second]);
    expect(await keyring.trust(chain[4])).toBe(true);
    expect(keyring.version).toBe(5n);
    const again = await openGrantKeyring({ file, pins: [second], pinnedVersion: 4n });
    expect([again.version, trustedOf(again)]).toEqual([5n, [second, third]]);
  });

  it("is begun anew where the pins are from a newer version than the file", async () => {
    const before = await openGrantKeyring({ file, pins: [first] });
    for (const envelope of chain.slice(0, 3)) await before.trust(envelope);
    const enrolledAnew = await openGrantKeyring({ file, pins: [second], pinnedVersion: 4n });
    expect(await enrolledAnew.trust(chain[2])).toBe(false);
    expect([enrolledAnew.version, trustedOf(enrolledAnew)]).toEqual([4n, [second]]);
  });

  it("never goes back", async () => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    for (const envelope of chain.slice(0, 3)) await keyring.trust(envelope);
    expect(await keyring.trust(chain[1])).toBe(false);
    expect(await keyring.trust(ring(3n, first, [first, stranger]))).toBe(false);
    expect(trustedOf(keyring)).toEqual([first, second]);
  });

  it.each([
    ["a stranger signed", ring(9n, stranger, [stranger, first])],
    ["a key signed that is not trusted any more", ring(9n, first, [stranger])],
    ["is of checkpoints", ring(9n, third, [stranger], CHECKPOINT_TYPE)],
    ["holds no key", ring(9n, third, [])],
    ["is missing", undefined],
  ])("refuses one that %s, and stays as it was", async (_, envelope) => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    for (const one of chain) await keyring.trust(one);
    const before = await readFile(file, "utf8");
    const error = await keyring.trust(envelope).catch((e: unknown) => e);
    expect(reasonOf(error)).toBe(ErrorReason.GRANT_INVALID);
    expect(trustedOf(keyring)).toEqual([third]);
    expect(await readFile(file, "utf8")).toBe(before);
  });

  it("refuses one whose bytes were changed after it was signed", async () => {
    const keyring = await openGrantKeyring({ file, pins: [first] });
    const forged = structuredClone(ring(1n, first, [first]));
    forged.payload = ring(1n, stranger, [stranger]).payload;
    expect(reasonOf(await keyring.trust(forged).catch((e: unknown) => e))).toBe(ErrorReason.GRANT_INVALID);
  });

  it("does not change where the new one cannot be written down", async () => {
    const keyring = await openGrantKeyring({ file: join(folder, "missing", "grant-keys.json"), pins: [first] });
    await expect(keyring.trust(chain[1])).rejects.toThrow("ENOENT");
    expect(keyring.version).toBe(0n);
    expect(trustedOf(keyring)).toEqual([first]);
  });

  it("says what to do about a file that is damaged", async () => {
    await writeFile(file, '{"version":"1","keys":[]}');
    await expect(openGrantKeyring({ file, pins: [first] })).rejects.toThrow(`the file ${file} is damaged; remove it`);
  });
});

describe("a device agent", () => {
  it("runs what a new key granted as soon as it knows it, and nothing that a retired key grants", async () => {
    await using device = await openTestAgent();
    const { key } = device.grants;
    const next = generateSigningKey();
    const audience = {
      deviceId: device.agent.deviceId,
      manifestDigest: device.agent.manifest().digest,
      tools: builtInTools,
    };
    const grants = createTestGrants(audience, { key: next });
    const ping = { tool: "device.ping", args: { text: "hello" } };
    const link = openTestLink(device.client);
    link.send(
      { case: "execute", value: await grants.start({ ...ping, callId: "too-early" }) },
      { case: "trustKeyring", value: { keyring: ring(1n, key, [key, next]) } },
      { case: "execute", value: await grants.start({ ...ping, callId: "new" }) },
      { case: "execute", value: await device.grants.start({ ...ping, callId: "old" }) },
      { case: "trustKeyring", value: { keyring: ring(2n, next, [next]) } },
      { case: "execute", value: await device.grants.start({ ...ping, callId: "too-late" }) },
    );
    link.end();
    const ends = (await link.rest()).flatMap(({ event }) => (event.case === "finished" ? [event.value] : []));
    const byId = Object.fromEntries(ends.map(({ callId, error }) => [callId, error?.reason]));
    const refused = ErrorReason.GRANT_INVALID;
    expect(byId).toEqual({ "too-early": refused, new: undefined, old: undefined, "too-late": refused });

    await device.restart();
    const after = openTestLink(device.client);
    after.end();
    const hello = (await after.rest())[0]?.event;
    expect(hello?.case === "hello" && hello.value.keyringVersion).toBe(2n);
  });
});
