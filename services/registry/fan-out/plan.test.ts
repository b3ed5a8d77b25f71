import { expect, test } from "vitest";
import { planWaves } from "./plan.ts";

const devices = ["a", "b", "c", "d", "e"].map((name) => ({ id: `dev-${name}`, name }));
const plan = (waveSize: number, canary: number) =>
  planWaves(devices, { waveSize, canary }).map((wave) => wave.map(({ name }) => name).join(""));

test.each([
  [0, 0, ["abcde"]],
  [2, 0, ["ab", "cd", "e"]],
  [2, 1, ["a", "bc", "de"]],
  [0, 1, ["a", "bcde"]],
  [9, 2, ["ab", "cde"]],
  [2, 5, ["abcde"]],
  [2, 9, ["abcde"]],
])("waves of %i with a canary of %i", (waveSize, canary, waves) => {
  expect(plan(waveSize, canary)).toEqual(waves);
});
