import { expect, test } from "vitest";
import { openWithPassphrase, sealWithPassphrase } from "./passphrase-seal.ts";

/** scrypt's N where the cost is not what is tested. */
const LOW = 2 ** 10;

const PASSPHRASE = "four words are good";

test("opens with the passphrase, however its characters are composed, and with no other", async () => {
  const sealed = await sealWithPassphrase("secret", "caf\u00e9 au lait again", "c", LOW);
  expect(JSON.stringify(sealed)).not.toContain("secret");
  expect(await openWithPassphrase(sealed, "cafe\u0301 au lait again", "c", LOW)).toBe("secret");
  expect(await openWithPassphrase(sealed, "cafe au lait again", "c", LOW)).toBeUndefined();
});

test("seals the same secret differently each time", async () => {
  const one = await sealWithPassphrase("secret", PASSPHRASE, "c", LOW);
  const other = await sealWithPassphrase("secret", PASSPHRASE, "c", LOW);
  expect(new Set([...Object.values(one), ...Object.values(other)]).size).toBe(6);
});

test("does not open what was changed, cut, or sealed for something else", async () => {
  const sealed = await sealWithPassphrase("secret", PASSPHRASE, "c", LOW);
  expect(await openWithPassphrase(sealed, PASSPHRASE, "d", LOW)).toBeUndefined();
  const changed = Buffer.from(sealed.sealed, "base64").map((byte, at) => (at === 0 ? byte ^ 1 : byte));
  for (const bad of [
    { ...sealed, sealed: Buffer.from(changed).toString("base64") },
    { ...sealed, sealed: "" },
    { ...sealed, nonce: "" },
    { ...sealed, salt: "" },
  ]) {
    expect(await openWithPassphrase(bad, PASSPHRASE, "c", LOW)).toBeUndefined();
  }
});

test("costs 128 MiB to try by default, which a lower cost does not open", async () => {
  const sealed = await sealWithPassphrase("secret", PASSPHRASE, "c");
  expect(await openWithPassphrase(sealed, PASSPHRASE, "c", 2 ** 16)).toBeUndefined();
  expect(await openWithPassphrase(sealed, PASSPHRASE, "c", 2 ** 17)).toBe("secret");
});
