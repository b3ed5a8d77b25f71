import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { acceptanceOf, acceptedText, readAccepted } from "../../../../lib/plugin/accepted.ts";
import { readPlugin } from "../../../../lib/plugin/plugin.ts";
import { eventually } from "../../../../testkit/eventually.ts";
import type { Executor } from "../../executor/executor.ts";
import { createLocalExecutor } from "../../executor/local.ts";
import { HAS_BWRAP, openTestSandbox, type TestSandbox } from "../../testing/test-sandbox.ts";
import { createTestContext, faultOf, type TestContext } from "../../tools/testing/context.ts";
import type { ToolContext } from "../../tools/tool.ts";
import { collectTools } from "../collect.ts";
import type { ToolProvider } from "../provider.ts";
import { openPluginTools, type PluginMachine } from "./provider.ts";
import type { PluginPlace } from "./scan.ts";

let folder: string;
let plugins: string;
let place: PluginPlace;
let scene: TestContext;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-plugins-")));
  plugins = join(folder, "plugins");
  await mkdir(plugins);
  scene = createTestContext();
  place = {
    folder: plugins,
    acceptedFile: join(folder, "plugins.json"),
    foundFile: join(folder, "plugin-tools.json"),
    writeRoots: [scene.folder],
    hidden: [join(folder, "state")],
    taken: new Set(["printer"]),
  };
});
afterEach(async () => {
  scene[Symbol.dispose]();
  await rm(folder, { recursive: true });
});

/** What a test declares of a tool; without more it runs on the host, so that no sandbox is needed. */
interface Declared {
  name?: string;
  command: string;
  [field: string]: unknown;
}

/** Writes a plugin with these tools and files. */
async function write(
  name: string,
  tools: readonly Declared[],
  files: Record<string, string> = {},
  more: JsonObject = {},
): Promise<string> {
  const own = join(plugins, name);
  await mkdir(own, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    await writeFile(join(own, path), content);
    await chmod(join(own, path), 0o755);
  }
  const declared = tools.map((tool) => ({ name: "run", description: "Runs.", permission_class: "host", ...tool }));
  await writeFile(join(own, "plugin.json"), JSON.stringify({ name, ...more, tools: declared }));
  return own;
}

async function accept(...names: readonly string[]): Promise<void> {
  const accepted = new Map(await readAccepted(place.acceptedFile));
  for (const name of names) {
    const read = await readPlugin(join(plugins, name));
    if (!read.ok) throw new Error(`${name}: ${JSON.stringify(read.problems)}`);
    accepted.set(read.plugin.manifest.name, acceptanceOf(read.plugin, 0));
  }
  await writeFile(place.acceptedFile, acceptedText(accepted));
}

interface Machine {
  executor?: PluginMachine["executor"];
  env?: Record<string, string>;
  refreshMs?: number;
}

const open = ({ executor = createLocalExecutor({ env: process.env }), env = {}, refreshMs = 60_000 }: Machine = {}) =>
  openPluginTools(place, { executor, env }, { refreshMs });

const namesOf = (provider: ToolProvider) => collectTools([provider.provided()]).tools.map(({ spec }) => spec.name);

const whyOf = (provider: ToolProvider, tool: string) =>
  collectTools([provider.provided()]).unavailable.find((one) => one.tool === tool)?.why;

async function call(
  provider: ToolProvider,
  tool: string,
  args: JsonObject = {},
  changes: Partial<ToolContext> = {},
): Promise<JsonObject> {
  const found = collectTools([provider.provided()]).tools.find(({ spec }) => spec.name === tool);
  if (found === undefined) throw new Error(`${tool} is not offered: ${whyOf(provider, tool)}`);
  const prepared = found.prepare(args);
  if (!prepared.ok) throw new Error(`refused: ${prepared.problems.map(({ field }) => field).join()}`);
  return prepared.run({ ...scene.context, ...changes });
}

describe("a tool of a plugin", () => {
  test("gets its input as one line of canonical JSON, and what it prints is the result", async () => {
    const schema = { type: "object", properties: { b: {}, a: {} }, additionalProperties: false };
    await write("echo", [{ command: "cat", input_schema: schema }]);
    await accept("echo");
    using provider = await open();
    expect(await call(provider, "echo:run", { b: "ü", a: [1] })).toMatchObject({
      stdout: '{"a":[1],"b":"ü"}\n',
      stderr: "",
      exitCode: 0,
      truncated: false,
    });
    expect(scene.live.stdout).toBe('{"a":[1],"b":"ü"}\n');
  });

  test("has the claims, the time and the schema that were declared", async () => {
    await write("claims", [
      { command: "true", read_only: true, timeout_seconds: 7 },
      { name: "wipe", command: "true", destructive: true },
    ]);
    await accept("claims");
    using provider = await open();
    const [run, wipe] = collectTools([provider.provided()]).tools.map(({ spec }) => spec);
    expect(run).toMatchObject({
      name: "claims:run",
      capabilities: ["claims:run"],
      defaultTimeoutMs: 7000,
      annotations: { readOnly: true, destructive: false, idempotent: true, openWorld: true },
      inputSchema: { additionalProperties: false },
    });
    expect(wipe).toMatchObject({ defaultTimeoutMs: 30_000, annotations: { readOnly: false, destructive: true } });
  });

  test("starts nothing for an input that its schema refuses", async () => {
    await write("strict", [{ command: "touch", args: [join(scene.folder, "ran")] }]);
    await accept("strict");
    using provider = await open();
    await expect(call(provider, "strict:run", { more: 1 })).rejects.toThrow("refused: more");
    expect(await readFile(join(scene.folder, "ran")).catch(() => "nothing")).toBe("nothing");
    await call(provider, "strict:run");
    expect(await readFile(join(scene.folder, "ran"), "utf8")).toBe("");
  });

  test("that could not be started is another thing than one that ran and failed", async () => {
    await write(
      "fails",
      [
        { name: "starts", command: "./script.sh" },
        { name: "not", command: "./no-interpreter" },
        { name: "nowhere", command: "true", work_dir: "/nonexistent" },
      ],
      {
        "script.sh": "#!/bin/sh\necho some; printf 'bad\\033[31m luck\\n' >&2; exit 3\n",
        "no-interpreter": "#!/nonexistent\n",
      },
    );
    await accept("fails");
    using provider = await open();
    expect(await faultOf(call(provider, "fails:starts"))).toEqual({
      reason: ErrorReason.TOOL_FAILED,
      metadata: { program: "script.sh", exit_code: "3" },
      message: "bad luck",
    });
    expect(await faultOf(call(provider, "fails:not"))).toMatchObject({ reason: ErrorReason.START_FAILED });
    expect(await faultOf(call(provider, "fails:nowhere"))).toMatchObject({ reason: ErrorReason.START_FAILED });
  });

  test("runs in its folder or one in it, with the variables that it was given and no others", async () => {
    const script = "#!/bin/sh\npwd; echo $GIVEN; env | cut -d = -f 1 | sort | tr '\\n' ' '\n";
    const env = { GIVEN: `<\${DEMO}>` };
    await write(
      "place",
      [
        { command: "./script.sh", env },
        { name: "sub", command: "pwd", work_dir: "sub" },
      ],
      { "script.sh": script },
      { env_allow: ["DEMO"] },
    );
    await mkdir(join(plugins, "place", "sub"));
    await accept("place");
    using provider = await open({ env: { DEMO: "demo", OTHER: "secret", REEVE_TOKEN: "secret" } });
    const { stdout } = await call(provider, "place:run");
    const [at, given, names = ""] = (stdout as string).split("\n");
    expect([at, given]).toEqual([join(plugins, "place"), "<demo>"]);
    expect(names).not.toMatch(/OTHER|REEVE_TOKEN|DEMO/);
    expect(await call(provider, "place:sub")).toMatchObject({ stdout: `${join(plugins, "place", "sub")}\n` });
  });

  test("is killed with its children when its time is up, and when its call is canceled", async () => {
    await write("slow", [{ command: "sh", args: ["-c", "echo on; sleep 60 & wait"] }]);
    await accept("slow");
    using provider = await open();
    expect(await faultOf(call(provider, "slow:run", {}, { timeoutMs: 300 }))).toMatchObject({
      reason: ErrorReason.TIMED_OUT,
      message: expect.stringContaining("with all its children") as string,
    });
    const stop = new AbortController();
    const canceled = faultOf(call(provider, "slow:run", {}, { signal: stop.signal }));
    await eventually(() => expect(scene.live.stdout).toBe("on\non\n"));
    stop.abort();
    expect(await canceled).toMatchObject({ reason: ErrorReason.CANCELED });
  });

  test("that floods is cut", async () => {
    await write("flood", [{ command: "sh", args: ["-c", "yes | head -c 3000000"] }]);
    await accept("flood");
    using provider = await open();
    const { stdout, truncated } = await call(provider, "flood:run");
    expect(truncated).toBe(true);
    expect((stdout as string).length).toBeLessThan(300_000);
  });
});

describe("calls of one tool", () => {
  const SCRIPT = '#!/bin/sh\nmkdir "$1" || exit 1\nsleep 0.2\nrmdir "$1"\n';

  test("run one at a time unless it says that more may", async () => {
    const args = [join(scene.folder, "lock")];
    const more = { command: "./script.sh", args };
    await write("turns", [more, { ...more, name: "many", concurrency_safe: true }], { "script.sh": SCRIPT });
    await accept("turns");
    using provider = await open();
    const several = (tool: string) => Promise.allSettled([1, 2, 3].map(() => call(provider, tool)));
    expect((await several("turns:run")).map(({ status }) => status)).toEqual(Array(3).fill("fulfilled"));
    expect((await several("turns:many")).map(({ status }) => status)).toContain("rejected");
  });

  test("that wait for their turn end with their own time, and start nothing", async () => {
    const mark = join(scene.folder, "mark");
    await write("turns", [{ command: "sh", args: ["-c", `echo x >> ${mark}; sleep 1`] }]);
    await accept("turns");
    using provider = await open();
    const first = call(provider, "turns:run");
    const second = faultOf(call(provider, "turns:run", {}, { signal: AbortSignal.timeout(100) }));
    const third = call(provider, "turns:run");
    expect(await second).toMatchObject({ reason: ErrorReason.TIMED_OUT });
    await Promise.all([first, third]);
    expect(await readFile(mark, "utf8")).toBe("x\nx\n");
  });
});

describe("what the owner has not accepted as it is", () => {
  test("is not offered, until it is", async () => {
    await write("demo", [{ command: "true" }]);
    using provider = await open({ refreshMs: 20 });
    const changed = vi.fn<() => void>();
    provider.onChange(changed);
    expect(namesOf(provider)).toEqual([]);
    expect(whyOf(provider, "demo")).toContain("was not accepted by the machine's owner");
    expect(whyOf(provider, "demo")).toContain(`reeve plugin accept ${join(plugins, "demo")}`);
    await accept("demo");
    await eventually(() => expect(namesOf(provider)).toEqual(["demo:run"]));
    expect(changed).toHaveBeenCalledTimes(1);
  });

  test("is not offered any more after a change", async () => {
    await write("demo", [{ command: "./script.sh" }], { "script.sh": "#!/bin/sh\n" });
    await accept("demo");
    using provider = await open({ refreshMs: 20 });
    expect(namesOf(provider)).toEqual(["demo:run"]);
    await write("demo", [{ command: "./script.sh", input_schema: { type: "object", description: "another" } }]);
    await eventually(() => expect(whyOf(provider, "demo")).toContain("has changed since it was accepted"));
    expect(namesOf(provider)).toEqual([]);
  });

  test("is not run, also where the change was not noticed yet", async () => {
    const mark = join(scene.folder, "mark");
    await write("demo", [{ command: "./script.sh" }], { "script.sh": "#!/bin/sh\n" });
    await accept("demo");
    using provider = await open();
    await call(provider, "demo:run");
    await writeFile(join(plugins, "demo", "script.sh"), `#!/bin/sh\ntouch ${mark}\n`);
    expect(await faultOf(call(provider, "demo:run"))).toMatchObject({
      reason: ErrorReason.NOT_AVAILABLE,
      message: expect.stringContaining("is not what was accepted any more, so nothing ran") as string,
    });
    await expect(readFile(mark)).rejects.toThrow("ENOENT");
  });

  test("is everything where the list of what was accepted is damaged", async () => {
    await write("demo", [{ command: "true" }]);
    await writeFile(place.acceptedFile, "{");
    using provider = await open();
    expect(namesOf(provider)).toEqual([]);
    expect(whyOf(provider, "plugins")).toContain("no plugin is used");
  });
});

describe("a plugin that is wrong leaves the others alone:", () => {
  beforeEach(async () => {
    await write("good", [{ command: "true" }]);
    await accept("good");
  });

  test.each<readonly [string, () => Promise<unknown>, string, RegExp]>([
    ["a bad declaration", () => write("bad", [{ command: "true", read_only: 1 }]), "bad", /line 1: read_only must be/],
    ["no plugin.json", () => mkdir(join(plugins, "empty")), "empty", /it has no plugin\.json/],
    [
      "a server without a program",
      () => write("mcp", [], {}, { mcp_servers: { a: {} } }),
      "mcp",
      /command must be a name/,
    ],
    [
      "a name twice",
      async () => {
        const own = await write("zwei", [{ command: "true" }]);
        await writeFile(join(own, "plugin.json"), await readFile(join(plugins, "good", "plugin.json")));
      },
      "zwei",
      /another plugin has the name "good"/,
    ],
    ["the name of a service", () => write("printer", [{ command: "true" }]), "printer", /belongs to a service/],
    [
      "a folder that others may write",
      async () => chmod(await write("open", [{ command: "true" }]), 0o777),
      "open",
      /may be written by other users/,
    ],
  ])("%s", async (_, make, name, why) => {
    await make();
    using provider = await open();
    expect(namesOf(provider)).toEqual(["good:run"]);
    expect(whyOf(provider, name)).toMatch(why);
  });

  test("plugins in a folder that callers may write are not used at all", async () => {
    place = { ...place, writeRoots: [folder] };
    using provider = await open();
    expect(namesOf(provider)).toEqual([]);
    expect(whyOf(provider, "plugins")).toContain("which may be written");
  });

  test("plugins in a folder of the agent's are not used", async () => {
    place = { ...place, hidden: [plugins] };
    using provider = await open();
    expect(whyOf(provider, "good")).toContain("belongs to Reeve");
  });
});

describe("a tool that cannot run here is unavailable, the plugin's others are not:", () => {
  test.each<readonly [string, Declared, RegExp]>([
    ["its program is missing", { command: "no-such-program" }, /no-such-program is not on the PATH/],
    ["a variable is not set", { command: "true", env: { A: `\${DEMO}` } }, /no DEMO, which it refers to/],
    ["there is no sandbox", { command: "true", permission_class: "read_only" }, /sandbox level read_only.*not set up/],
    ["there is no sandbox, and no class is named", { command: "true", permission_class: undefined }, /level workspace/],
  ])("%s", async (_, tool, why) => {
    await write("demo", [{ name: "other", command: "true" }, tool], {}, { env_allow: ["DEMO"] });
    await accept("demo");
    using provider = await open();
    expect(namesOf(provider)).toEqual(["demo:other"]);
    expect(whyOf(provider, "demo:run")).toMatch(why);
  });
});

describe.skipIf(!HAS_BWRAP)("in the sandbox", () => {
  let sandbox: TestSandbox;
  beforeAll(async () => {
    sandbox = await openTestSandbox();
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const SCRIPT = [
    "#!/bin/sh",
    "cat; cat own.txt",
    `(echo x > own.txt) 2>/dev/null && echo "changed its folder"`,
    `(echo x > "$1/made") 2>/dev/null && echo "wrote where callers may"`,
    `(cat "$2") 2>/dev/null && echo "read outside"`,
    "exit 0",
  ].join("\n");

  test.each([
    ["read_only", "{}\nown\n"],
    ["workspace", "{}\nown\nwrote where callers may\n"],
  ])("a tool of the class %s sees its plugin's folder, and changes only what it may", async (level, stdout) => {
    const args = [sandbox.work, join(sandbox.outside, "c.txt")];
    const tool = { command: "./script.sh", args, permission_class: level };
    const own = await write("boxed", [tool], { "script.sh": `${SCRIPT}\n`, "own.txt": "own\n" });
    await accept("boxed");
    using provider = await open({ executor: sandbox.executor });
    const levels: (string | undefined)[] = [];
    const executor: Executor = {
      ...sandbox.executor,
      run(spec) {
        levels.push(spec.isolation);
        return sandbox.executor.run(spec);
      },
    };
    expect(await call(provider, "boxed:run", {}, { executor })).toMatchObject({ stdout, exitCode: 0 });
    expect(levels).toEqual([level]);
    expect(await readFile(join(own, "own.txt"), "utf8")).toBe("own\n");
  });

  test("other programs do not see the plugin's folder", async () => {
    const own = await write("boxed", [{ command: "true" }]);
    const run = await sandbox.run(["ls", own]);
    expect(run).toMatchObject({ kind: "exited", code: 2 });
  });
});
