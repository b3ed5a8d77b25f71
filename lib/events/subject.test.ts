import { expect, test } from "vitest";
import { isSubject, subjectMatcher, subjectOf } from "./subject.ts";

test.each([
  ["reeve.call.v1.CallFinished", "c1", "reeve.call.v1.call_finished.c1"],
  ["reeve.agent.v1.LLMAnswered", "run-7", "reeve.agent.v1.llm_answered.run-7"],
  ["reeve.device.v1.Ipv6Changed", "laptop", "reeve.device.v1.ipv6_changed.laptop"],
  ["reeve.call.v1.CallFinished", "a.b c*>é", "reeve.call.v1.call_finished.a_b_c___"],
  ["reeve.call.v1.CallFinished", "", "reeve.call.v1.call_finished._"],
])("names the subject of %s about %j", (type, key, subject) => {
  expect(subjectOf(type, key)).toBe(subject);
  expect(isSubject(subject)).toBe(true);
});

test("keeps the subject of a long key within the limit", () => {
  expect(isSubject(subjectOf("reeve.call.v1.CallFinished", "k".repeat(1000)))).toBe(true);
});

test.each([
  "",
  "reeve",
  "other.a",
  "reeve.",
  "reeve..a",
  "reeve.a b",
  "reeve.*",
  "reeve.>",
  `reeve.${"a".repeat(255)}`,
])("refuses to publish on %j", (subject) => {
  expect(isSubject(subject)).toBe(false);
});

test.each([
  ["reeve.>", "reeve.a", true],
  ["reeve.>", "reeve.a.b", true],
  ["reeve.>", "reeve", false],
  ["reeve.*.b", "reeve.a.b", true],
  ["reeve.*.b", "reeve.a.c", false],
  ["reeve.*", "reeve.a.b", false],
  ["reeve.a.>", "reeve.a", false],
  ["reeve.a", "reeve.a", true],
])("pattern %s on %s: %s", (pattern, subject, matches) => {
  expect(subjectMatcher(pattern)(subject)).toBe(matches);
});
