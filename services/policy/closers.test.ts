import { expect, it } from "vitest";
import { createClosers } from "./closers.ts";

it("closes all, the last first, also where one fails at once or later, and says what failed first", async () => {
  const { add, closeAll } = createClosers();
  const closed: string[] = [];
  const closer = (name: string, fail?: () => Promise<void>) =>
    add(() => {
      closed.push(name);
      return fail?.();
    });
  closer("a");
  closer("b", () => Promise.reject(new Error("b failed")));
  closer("c");
  closer("d", () => {
    throw new Error("d failed");
  });
  await expect(closeAll()).rejects.toThrow("d failed");
  expect(closed).toEqual(["d", "c", "b", "a"]);
  await closeAll();
  expect(closed).toHaveLength(4);
});
