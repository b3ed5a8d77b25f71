import { expect, test } from "vitest";
import { createCompany } from "./company.ts";

/** A company whose last ones came alone, so often that nothing waits any more. */
function alone() {
  const company = createCompany();
  for (let i = 0; i < 16; i++) company.came(1);
  return company;
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const tick = () => new Promise<void>((resolve) => process.nextTick(resolve));

test("in the beginning, and in a crowd, waits for two turns of the event loop", async () => {
  const company = createCompany();
  for (const count of [1, 2]) {
    let isTime = false;
    company.gather(() => {
      isTime = true;
    });
    await tick();
    expect(isTime).toBe(false);
    await turn();
    expect(isTime).toBe(false);
    await turn();
    expect(isTime).toBe(true);
    company.came(count);
  }
});

test("what has come alone for a while waits only for the promises of the running callback", async () => {
  const order: string[] = [];
  alone().gather(() => order.push("go"));
  await Promise.resolve().then(() => order.push("promise"));
  const immediate = turn().then(() => order.push("turn"));
  await immediate;
  expect(order).toEqual(["promise", "go", "turn"]);
});

test("a second one in the same turn is a crowd", async () => {
  const company = alone();
  await new Promise<void>(company.gather);
  company.came(1);
  const second = new Promise<void>(company.gather).then(() => "second");
  expect(await Promise.race([second, tick()])).toBeUndefined();
  expect(await second).toBe("second");
});

test("one that comes in a later turn is alone again", async () => {
  const company = alone();
  await new Promise<void>(company.gather);
  company.came(1);
  await turn();
  let isTime = false;
  company.gather(() => {
    isTime = true;
  });
  await tick();
  await Promise.resolve();
  expect(isTime).toBe(true);
});
