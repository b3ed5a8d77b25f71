import { expect, test } from "vitest";
import { type RowKind, stepsOf, type WaitingRow } from "./rows.ts";

interface Job {
  name: string;
  waiting?: WaitingRow<unknown>;
}

const MIB = 1024 * 1024;

function kind(bytes = 0): RowKind<unknown, unknown, unknown> {
  const unused = async () => {
    throw new Error("nothing is written");
  };
  return { key: String, bytes: () => bytes, one: unused, many: unused };
}

const [a, b, large] = [kind(), kind(), kind(2 * MIB)];
const row = (of: RowKind<unknown, unknown, unknown>, about: string, name = about): Job => ({
  name,
  waiting: { kind: of, row: about },
});
const names = (jobs: readonly Job[]) =>
  stepsOf<unknown, Job>(jobs).map((step) => step.map(({ name }) => name).join(" "));

test("puts rows of a kind together, whatever other rows came between", () => {
  expect(names([row(a, "1"), row(b, "2"), row(a, "3"), row(b, "4")])).toEqual(["1 3", "2 4"]);
});

test("puts no row before one about the same thing, nor beside it", () => {
  const jobs = [row(a, "1"), row(b, "1", "1b"), row(a, "2"), row(a, "1", "1a"), row(a, "3"), row(b, "3", "3b")];
  expect(names(jobs)).toEqual(["1 2", "1b", "1a 3", "3b"]);
});

test("puts no row across a job that hands over none", () => {
  expect(names([row(a, "1"), { name: "job" }, row(a, "2"), row(a, "3")])).toEqual(["1", "job", "2 3"]);
});

test("ends a step that is large", () => {
  expect(names(["1", "2", "3", "4", "5"].map((about) => row(large, about)))).toEqual(["1 2", "3 4", "5"]);
});
