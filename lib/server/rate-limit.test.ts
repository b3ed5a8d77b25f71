import { expect, test } from "vitest";
import { addressKey } from "./caller-address.ts";
import { createRateLimit } from "./rate-limit.ts";

test("lets an address fail so often at once, then once in a while, and others as before", () => {
  let now = 1000;
  const rate = createRateLimit({ burst: 3, everyMs: 100, now: () => now });
  for (let i = 0; i < 3; i++) {
    expect(rate.waitMs("a")).toBe(0);
    rate.spend("a");
  }
  expect(rate.waitMs("a")).toBe(100);
  expect(rate.waitMs("b")).toBe(0);
  now += 100;
  expect(rate.waitMs("a")).toBe(0);
  rate.spend("a");
  expect(rate.waitMs("a")).toBe(100);
  now += 1000;
  expect(rate.waitMs("a")).toBe(0);
});

test("remembers no more addresses than its limit: the others share one allowance", () => {
  let now = 0;
  const rate = createRateLimit({ burst: 1, everyMs: 100, maxKeys: 2, now: () => now });
  rate.spend("a");
  rate.spend("b");
  rate.spend("c");
  expect(rate.waitMs("d")).toBe(100);
  now = 100;
  rate.spend("e");
  expect([rate.waitMs("e"), rate.waitMs("a")]).toEqual([100, 0]);
});

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
  ["2001:db8::1", "2001:db8:0:0::/64"],
  ["fe80::1%eth0", "fe80:0:0:0::/64"],
  ["::1", "0:0:0:0::/64"],
  [undefined, "local"],
])("%s counts as %s", (address, key) => {
  expect(addressKey(address)).toBe(key);
});
