import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { manifestOverLimit } from "./manifest-limits.ts";

function texts(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `x${at}`);
}

function labels(count: number) {
  return texts(count).map((key) => ({ $typeName: "reeve.device.v1.Label" as const, key, value: "" }));
}

test("an ordinary manifest, and one at its limits", () => {
  const most = { labels: labels(256), capabilities: texts(4096), readRoots: ["/".padEnd(4096, "x")] };
  expect(manifestOverLimit(create(ManifestSchema, { name: "nas", writeRoots: ["/srv"] }))).toBeUndefined();
  expect(manifestOverLimit(create(ManifestSchema, most))).toBeUndefined();
});

test.each<[string, Partial<Manifest>]>([
  ["257 labels", { labels: labels(257) }],
  ["4097 capabilities", { capabilities: texts(4097) }],
  ["1025 readRoots", { readRoots: texts(1025) }],
  ["1025 writeRoots", { writeRoots: texts(1025) }],
  ["text of more than 4096", { writeRoots: ["/".padEnd(4097, "x")] }],
  ["text of more than 4096", { platform: "x".repeat(4097) }],
])("%s", (problem, facts) => {
  expect(manifestOverLimit(create(ManifestSchema, facts as Manifest))).toContain(problem);
});
