import { expect, test } from "vitest";
import { categoryOf, splitOf } from "./categories.ts";

const frame = (functionName: string, url = "") => ({ functionName, url });

test.each([
  [frame("toBinary", "file:///r/node_modules/@bufbuild/protobuf/dist/esm/to-binary.js"), "protobuf"],
  [frame("eval", "file:///r/node_modules/@bufbuild/protovalidate/dist/esm/eval.js"), "validation, CEL, RE2"],
  [frame("run", "file:///r/lib/store/sqlite-handle.ts"), "SQLite"],
  [frame("finish", "file:///r/services/registry/calls/finish.ts"), "own code"],
  [frame("signOneShot", "node:internal/crypto/sig"), "Ed25519"],
  [frame("onStreamRead", "node:internal/stream_base_commons"), "transport"],
  [frame("(garbage collector)"), "garbage collection"],
  [frame("fdatasync"), "waiting for the disk"],
  [frame("somethingNative"), undefined],
])("%j is %s", (one, category) => {
  expect(categoryOf(one)).toBe(category);
});

test("a profile's time is split, without what was idle, and native code counts as its caller's", () => {
  const nodes = [
    { id: 1, callFrame: frame("(idle)") },
    { id: 2, callFrame: frame("(garbage collector)") },
    { id: 3, callFrame: frame("finish", "file:///r/services/registry/calls/finish.ts"), children: [4] },
    { id: 4, callFrame: frame("structuredClone") },
  ];
  const split = splitOf({ nodes, samples: [1, 2, 3, 4], timeDeltas: [100, 20, 30, 5] });
  expect(Object.fromEntries(split)).toEqual({ "garbage collection": 20, "own code": 35 });
});
