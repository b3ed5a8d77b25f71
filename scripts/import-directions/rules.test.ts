import { describe, expect, it } from "vitest";
import { importsOf } from "./imports.ts";
import { findViolations } from "./rules.ts";

const dependencies = new Set(["kysely", "@bufbuild/protobuf"]);

/** Not in the text itself, which is checked too. */
const TEST_FILE = "./log.test.ts";

function check(path: string, text: string): string[] {
  return findViolations([{ path, text }], { dependencies });
}

describe("the import directions", () => {
  it.each([
    ["gen/ts/a_pb.ts", 'import { b } from "./b_pb.ts";'],
    ["lib/log/log.ts", 'import { a } from "../../gen/ts/a_pb.ts";\nimport { c } from "../config/c.ts";'],
    ["services/policy/main.ts", 'import { a } from "../../lib/log/log.ts";\nimport { r } from "./rules/r.ts";'],
    ["cli/stack/stack.ts", 'import { run } from "../../services/policy/service.ts";'],
    ["cli/main.test.ts", 'import { run } from "../services/agent/run.ts";'],
    ["testkit/control-plane.ts", 'import { run } from "../cli/stack/stack.ts";\nimport cp from "node:child_process";'],
    ["bench/plane.ts", 'import { a } from "../testkit/control-plane.ts";'],
    [
      "test/scenario.test.ts",
      'import { a } from "../services/policy/a.ts";\nimport { b } from "../services/registry/b.ts";',
    ],
    ["lib/log/log.test.ts", 'import { startNats } from "../../testkit/nats.ts";'],
    ["lib/log/log.ts", "// import { a } from '../../services/policy/a.ts';"],
    ["services/device-agent/executor/local.ts", 'import { spawn } from "node:child_process";'],
    ["lib/store/sqlite.ts", 'import { DatabaseSync } from "node:sqlite";'],
    ["lib/store/postgres.ts", 'import { Pool } from "pg";'],
    ["testkit/postgres.ts", 'import { Client } from "pg";'],
    ["services/policy/config.ts", "export const port = process.env.PORT;"],
    ["lib/log/log.ts", "/** Never reads process.env. */\nexport const a = 1;"],
    ["lib/store/store.ts", 'import { Kysely } from "kysely";\nimport { create } from "@bufbuild/protobuf/wkt";'],
    ["lib/store/store.test.ts", 'import { it } from "vitest";'],
    ["lib/store/testdata/conformance.ts", 'import { it } from "vitest";'],
    ["lib/store/store.ts", 'import type { Options } from "ajv";'],
    ["client/index.ts", 'export * from "../gen/ts/a_pb.ts";\nimport { create } from "@bufbuild/protobuf";'],
    ["client/node.ts", 'import { a } from "../lib/rpc-client/unary/a.ts";'],
    ["lib/rpc-client/unary/a.ts", 'import { b } from "./b.ts";\nimport { create } from "@bufbuild/protobuf";'],
    ["examples/typed.ts", 'import { a } from "reeve/client";\nconst token = process.env.TOKEN;'],
  ])("allow %s: %s", (path, text) => {
    expect(check(path, text)).toEqual([]);
  });

  it.each([
    ["gen/ts/a_pb.ts", 'import { l } from "../../lib/log/log.ts";', "gen must not import lib"],
    ["lib/log/log.ts", 'import { p } from "../../services/policy/p.ts";', "lib must not import services"],
    ["lib/log/log.ts", 'import type { P } from "../../services/policy/p.ts";', "lib must not import services"],
    ["lib/log/log.ts", 'export * from "../../cli/main.ts";', "lib must not import cli"],
    [
      "lib/log/all.test.ts",
      `await import("${TEST_FILE}");`,
      "tests run once in a worker, and who imports them has none",
    ],
    ["lib/log/log.ts", 'const m = await import("../../cli/main.ts");', "lib must not import cli"],
    ["lib/log/log.ts", 'import {\n  a,\n  b,\n} from "../../services/x/y.ts";', "lib must not import services"],
    [
      "lib/log/log.ts",
      'import { s } from "../../scripts/run-tool.ts";',
      "lib must not import what is outside the package",
    ],
    [
      "cli/main.ts",
      'import pkg from "../package.json" with { type: "json" };',
      "cli must not import what is outside the package",
    ],
    ["services/registry/main.ts", 'import { p } from "../policy/p.ts";', "services meet in gen"],
    ["services/registry/a.test.ts", 'import { p } from "../policy/p.ts";', "services meet in gen"],
    ["services/agent/a.ts", 'import { c } from "../../cli/c.ts";', "services must not import cli"],
    ["lib/a.ts", 'import { c } from "../testkit/c.ts";', "lib must not import what is outside the package"],
    ["cli/call/a.ts", 'import { s } from "../../services/policy/s.ts";', "everything else in cli uses client/"],
    ["testkit/a.ts", 'import { s } from "../test/s.ts";', "testkit must not import test"],
    ["bench/a.ts", 'import { s } from "../test/s.ts";', "bench must not import test"],
  ])("refuse %s: %s", (path, text, problem) => {
    expect(check(path, text)).toEqual([expect.stringContaining(problem)]);
  });

  it.each([
    [
      "cli/main.ts",
      'import { spawn } from "node:child_process";',
      "only services/device-agent/executor starts programs",
    ],
    ["lib/a.ts", 'import cp from "child_process";', "only services/device-agent/executor starts programs"],
    [
      "lib/a.ts",
      'process.getBuiltinModule("node:child_process");',
      "only services/device-agent/executor starts programs",
    ],
    ["services/policy/a.ts", 'import { DatabaseSync } from "node:sqlite";', "imports node:sqlite"],
    ["client/index.ts", 'import { fault } from "../lib/fault/fault.ts";', "client must not import lib"],
    ["client/index.ts", 'import { Kysely } from "kysely";', "imports kysely: the client needs little"],
    ["lib/rpc-client/unary/a.ts", 'import { fault } from "../../fault/fault.ts";', "which stands by itself"],
    ["lib/rpc-client/unary/a.ts", 'import { Kysely } from "kysely";', "imports kysely: the client needs little"],
    ["lib/log/log.ts", 'import { a } from "../../client/index.ts";', "lib must not import client"],
    ["services/policy/a.ts", 'import { Pool } from "pg";', "imports pg: only lib/store does"],
    ["lib/events/a.test.ts", 'import type { Pool } from "pg";', "imports pg: only lib/store does"],
    ["lib/a.ts", "const home = process.env.HOME;", "reads the environment"],
    ["lib/a.ts", 'import { env } from "node:process";', "reads the environment"],
    ["lib/a.ts", "const { env } = process;", "reads the environment"],
    ["lib/a.ts", 'import { Ajv } from "ajv";', "imports ajv, which is no dependency of the published package"],
  ])("refuse what only some may use, in %s: %s", (path, text, problem) => {
    expect(check(path, text)).toEqual([expect.stringContaining(problem)]);
  });

  it("let one file in lib/store know node:sqlite, and name the second", () => {
    const text = 'import { DatabaseSync } from "node:sqlite";';
    const files = ["lib/store/a.ts", "lib/store/b.ts"].map((path) => ({ path, text }));
    expect(findViolations(files, { dependencies })).toEqual([
      "lib/store/b.ts:1: imports node:sqlite: only lib/store/a.ts does",
    ]);
  });

  it("name the file and the line", () => {
    expect(check("lib/a.ts", '// A note.\n\nimport { p } from "../services/x/p.ts";')).toEqual([
      "lib/a.ts:3: imports services/x/p.ts: lib must not import services",
    ]);
  });
});

describe("importsOf", () => {
  it("finds every form of import and nothing else", () => {
    const text = [
      'import "./side-effect.ts";',
      'import * as all from "./all.ts";',
      'export type { T } from "./type.ts";',
      'export { value } from "./value.ts";',
      "export function from(text: string): string {",
      '  return load(text, "./no-import.ts");',
      "}",
    ].join("\n");
    expect(importsOf(text).map(({ specifier, typeOnly }) => [specifier, typeOnly])).toEqual([
      ["./side-effect.ts", false],
      ["./all.ts", false],
      ["./type.ts", true],
      ["./value.ts", false],
    ]);
  });
});
