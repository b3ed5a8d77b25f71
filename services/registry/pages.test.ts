import { expect, test } from "vitest";
import { pageOf } from "./pages.ts";

test("walks a list page by page to its end", () => {
  const all = [1, 2, 3, 4, 5];
  const first = pageOf(all, 2, "", 10);
  const second = pageOf(all, 2, first.nextPageToken, 10);
  const third = pageOf(all, 2, second.nextPageToken, 10);
  expect([first.page, second.page, third.page]).toEqual([[1, 2], [3, 4], [5]]);
  expect(third.nextPageToken).toBe("");
});
