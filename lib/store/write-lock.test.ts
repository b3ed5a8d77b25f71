import { expect, test } from "vitest";
import { createWriteLock } from "./write-lock.ts";

test("serves those who wait in their order", async () => {
  const lock = createWriteLock();
  const order: number[] = [];
  await lock.acquire();
  const turns = [1, 2, 3].map(async (n) => {
    await lock.acquire();
    order.push(n);
    lock.release();
  });
  lock.release();
  await Promise.all(turns);
  expect(order).toEqual([1, 2, 3]);
});

test("ends a wait that would never end, and stays usable", async () => {
  const lock = createWriteLock(5);
  await lock.acquire();
  await expect(lock.acquire()).rejects.toThrow("inside a transaction use its own handle");
  lock.release();
  await lock.acquire();
});
