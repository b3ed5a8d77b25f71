import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../fault/fault.ts";
import { readPageToken, writePageToken } from "./page-token.ts";

test("reads its own tokens, and none as the start", () => {
  expect(readPageToken("")).toBeUndefined();
  for (const position of [0, 42, 10 ** 15 - 1]) expect(readPageToken(writePageToken(position))).toBe(position);
});

test.each(["bm9wZQ", "42", "x", writePageToken(-1), writePageToken(1.5), writePageToken(10 ** 15)])(
  "refuses %j",
  (token) => {
    let thrown: unknown;
    try {
      readPageToken(token);
    } catch (error: unknown) {
      thrown = error;
    }
    expect(reasonOf(thrown)).toBe(ErrorReason.INVALID_INPUT);
  },
);
