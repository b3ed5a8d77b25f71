import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { isRetryable, reasonOf } from "../fault/fault.ts";
import { outageFault } from "./outage.ts";
import { CommitUnknown, DatabaseUnreachable } from "./postgres-errors.ts";

test("says that a database is unavailable, and not where it is", () => {
  const refusal = outageFault(new DatabaseUnreachable("postgres://db.internal cannot be reached"));
  expect(reasonOf(refusal)).toBe(ErrorReason.NOT_READY);
  expect(isRetryable(refusal)).toBe(true);
  expect(refusal?.message).not.toContain("db.internal");
});

test("does not invite to try again what may have happened", () => {
  const refusal = outageFault(new CommitUnknown("lost during COMMIT"));
  expect(refusal?.code).toBe(Code.Unknown);
  expect(isRetryable(refusal)).toBe(false);
});

test("says nothing about other errors", () => {
  expect(outageFault(new Error("the disk is full"))).toBeUndefined();
});
