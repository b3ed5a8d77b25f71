import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { WriteMode } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";

const { PATH_OUTSIDE_ROOTS: OUTSIDE, OS_REFUSED: REFUSED, TARGET_NOT_FOUND: MISSING, INVALID_INPUT } = ErrorReason;

let test: TestContext;
let outside: TestContext;
let server: Server;
beforeEach(async () => {
  test = createTestContext();
  outside = createTestContext();
  writeFileSync(join(outside.folder, "secret"), "outside");
  writeFileSync(at("file"), "inside");
  mkdirSync(at("folder"));
  symlinkSync(outside.folder, at("to-folder"));
  symlinkSync(join(outside.folder, "secret"), at("to-file"));
  symlinkSync("/proc/self/root", at("to-root"));
  linkSync(join(outside.folder, "secret"), at("hard"));
  execFileSync("mkfifo", [at("pipe")]);
  server = createServer().listen(at("socket"));
  await new Promise((resolve) => server.once("listening", resolve));
});
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  outside[Symbol.dispose]();
  test[Symbol.dispose]();
});

const at = (name: string): string => `${test.folder}/${name}`;
const tools = fileToolsIn(() => test.context);

/** Every tool that takes a path, as it would act on it. */
const ACTIONS = {
  read: (path: string) => tools.read({ path }),
  write: (path: string) => tools.write({ path, text: "x" }),
  append: (path: string) => tools.write({ path, text: "x", mode: WriteMode.APPEND }),
  list: (path: string) => tools.list({ path }),
  stat: (path: string) => tools.stat({ path }),
  delete: (path: string) => tools.delete({ path, recursive: true }),
  move: (path: string) => tools.move({ path, to: at("moved") }),
  "move to": (path: string) => tools.move({ path: at("file"), to: path, overwrite: true }),
  search: (path: string) => tools.search({ path, pattern: "outside" }),
  edit: (path: string) => tools.edit({ path, oldText: "outside", newText: "x" }),
} as const;

type Action = keyof typeof ACTIONS;
const ALL = Object.keys(ACTIONS) as Action[];

/** What a path is, and by which tools it may be used after all: a link or pipe may be looked at and deleted as itself. */
const PATHS: [string, () => string, readonly ErrorReason[], readonly Action[]][] = [
  ["beside the root", () => `${test.folder}-other/f`, [OUTSIDE], []],
  ["up and out", () => at("../secret"), [OUTSIDE], []],
  ["up and out from below", () => at("folder/../../secret"), [OUTSIDE], []],
  ["a file outside", () => join(outside.folder, "secret"), [OUTSIDE], []],
  ["the root of /proc", () => `/proc/self/root${outside.folder}/secret`, [OUTSIDE], []],
  ["a descriptor of the agent", () => "/proc/self/fd/0", [OUTSIDE], []],
  ["a device", () => "/dev/null", [OUTSIDE], []],
  ["through a link to a folder", () => at("to-folder/secret"), [OUTSIDE], []],
  ["through a link to the root of /proc", () => at(`to-root${outside.folder}/secret`), [OUTSIDE], []],
  ["a link to a folder", () => at("to-folder"), [OUTSIDE], ["stat", "delete"]],
  ["a link to a file", () => at("to-file"), [OUTSIDE, REFUSED], ["stat", "delete"]],
  ["a hard link", () => at("hard"), [OUTSIDE, REFUSED], ["stat", "delete", "write"]],
  ["a pipe", () => at("pipe"), [REFUSED], ["stat", "delete"]],
  ["a socket", () => at("socket"), [REFUSED], ["stat", "delete"]],
  ["a NUL", () => at("file\0.txt"), [INVALID_INPUT], []],
  ["no absolute path", () => "file", [INVALID_INPUT], []],
  ["too long a name", () => at("n".repeat(300)), [REFUSED], []],
  ["another form of a name", () => at("ｆile"), [MISSING, REFUSED], ["write", "append", "move to"]],
  ["something like a slash", () => at("..\u2215..\u2215secret"), [MISSING, REFUSED], ["write", "append", "move to"]],
  ["something like dots", () => at("\uff0e\uff0e/secret"), [MISSING], []],
  ["a name with controls", () => at("fi\u202ele\u001b[2J"), [MISSING, REFUSED], ["write", "append", "move to"]],
  ["half a character", () => at("\ud800"), [MISSING, REFUSED, INVALID_INPUT], ["write", "append", "move to"]],
];

describe.each(PATHS)("%s", (_, path, reasons, allowed) => {
  it.each(ALL.filter((action) => !allowed.includes(action)))("is refused by %s, with a type", async (action) => {
    const fault = await faultOf(ACTIONS[action](path()));
    expect(reasons).toContain(fault.reason);
    expect(fault.metadata.field).toMatch(/^(path|to)$/);
    expect(readdirSync(outside.folder)).toEqual(["secret"]);
    expect(readFileSync(join(outside.folder, "secret"), "utf8")).toBe("outside");
  });

  it.runIf(allowed.length > 0)("does nothing outside where it is used", async () => {
    for (const action of allowed) await ACTIONS[action](path()).catch(() => undefined);
    expect(readdirSync(outside.folder)).toEqual(["secret"]);
    expect(readFileSync(join(outside.folder, "secret"), "utf8")).toBe("outside");
  });
});
