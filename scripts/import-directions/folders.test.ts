import { describe, expect, it } from "vitest";
import { AREAS, type Floors } from "./floors.ts";
import { folderOf, folderViolations } from "./folders.ts";

const areas: Readonly<Record<string, Floors>> = {
  lib: { ground: ["fault", "log"], wire: ["server", "client"] },
  "services/policy": { rules: ["rules"], evaluate: ["evaluate"] },
};

/** Files by path, each with the imports that it holds. */
function check(tree: Record<string, readonly string[]>): string[] {
  const files = Object.entries(tree).map(([path, specifiers]) => {
    return { path, text: specifiers.map((specifier) => `import { a } from "${specifier}";`).join("\n") };
  });
  return folderViolations(files, areas);
}

describe("the order of folders", () => {
  it("lets a folder import lower floors, its own floor, and what is beside the folders", () => {
    const found = check({
      "lib/server/a.ts": ["../fault/a.ts", "../client/a.ts", "../../gen/ts/a_pb.ts"],
      "lib/log/a.ts": ["../fault/a.ts"],
      "services/policy/evaluate/a.ts": ["../rules/a.ts", "../clock.ts"],
      "services/policy/service.ts": ["./evaluate/a.ts", "./rules/a.ts", "./clock.ts"],
      "services/policy/rules/a.test.ts": ["../evaluate/a.ts"],
      "services/policy/rules/testdata/a.ts": ["../../evaluate/a.ts"],
    });
    expect(found).toEqual([]);
  });

  it("refuses the import of a higher floor, with its place", () => {
    expect(check({ "lib/log/a.ts": ["../fault/a.ts", "../server/a.ts"] })).toEqual([
      "lib/log/a.ts:2: lib/log must not import lib/server, which is on a higher floor",
    ]);
  });

  it("refuses a circle, through several folders and through files beside them", () => {
    expect(check({ "lib/server/a.ts": ["../client/a.ts"], "lib/client/b.ts": ["../server/b.ts"] })).toEqual([
      "circle of imports: lib/server → lib/client → lib/server",
    ]);
    expect(
      check({ "services/policy/rules/a.ts": ["../tables.ts"], "services/policy/tables.ts": ["./rules/b.ts"] }),
    ).toEqual(["circle of imports: services/policy/rules → services/policy/tables.ts → services/policy/rules"]);
  });

  it("refuses a folder that is on no floor", () => {
    expect(check({ "lib/other/a.ts": [] })).toEqual([
      "lib/other is on no floor: name it in scripts/import-directions/floors.ts",
    ]);
  });

  it("counts a file for its folder, or for itself beside the folders of an area", () => {
    expect(
      ["lib/log/deep/a.ts", "services/policy/main.ts", "client/index.ts"].map((path) => folderOf(path, areas)),
    ).toEqual(["lib/log", "services/policy/main.ts", "client"]);
  });

  it("names no folder twice in an area", () => {
    for (const floors of Object.values(AREAS)) {
      const names = Object.values(floors).flat();
      expect(names).toEqual([...new Set(names)]);
    }
  });
});
