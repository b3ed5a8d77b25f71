import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "@bufbuild/protobuf";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { acceptanceOf, acceptedText } from "../../../../../lib/plugin/accepted.ts";
import { readFound, serverTools } from "../../../../../lib/plugin/found-tools.ts";
import { readPlugin } from "../../../../../lib/plugin/plugin.ts";
import type { ServerTool } from "../../../../../lib/plugin/server-tools.ts";
import { eventually } from "../../../../../testkit/eventually.ts";
import { createLocalExecutor } from "../../../executor/local.ts";
import { replaceFile } from "../../../replace-file.ts";
import { HAS_BWRAP, openTestSandbox } from "../../../testing/test-sandbox.ts";
import { createTestContext, faultOf, type TestContext } from "../../../tools/testing/context.ts";
import type { ToolContext } from "../../../tools/tool.ts";
import { collectTools } from "../../collect.ts";
import type { ToolProvider } from "../../provider.ts";
import { openPluginTools, type PluginMachine } from "../provider.ts";
import type { PluginPlace } from "../scan.ts";
import { connect } from "./connect.ts";
import { createMcpServer } from "./server.ts";

const ODD_SERVER = fileURLToPath(new URL("testdata/odd-server.ts", import.meta.url));

let folder: string;
let marks: string;
let place: PluginPlace;
let scene: TestContext;
let provider: ToolProvider | undefined;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-mcp-")));
  marks = join(folder, "marks");
  await mkdir(marks);
  scene = createTestContext();
  place = {
    folder: join(folder, "plugins"),
    acceptedFile: join(folder, "plugins.json"),
    foundFile: join(folder, "plugin-tools.json"),
    writeRoots: [scene.folder],
    hidden: [],
    taken: new Set(),
  };
  await mkdir(join(place.folder, "odd"), { recursive: true });
});
afterEach(async () => {
  provider?.[Symbol.dispose]();
  provider = undefined;
  scene[Symbol.dispose]();
  // A server that is being ended may leave its last mark meanwhile.
  await rm(folder, { recursive: true, maxRetries: 10 });
});

/** Writes the plugin with one server, which without more runs on the host, so that no sandbox is needed. */
async function write(server: JsonObject = {}): Promise<void> {
  const odd = { command: process.execPath, args: [ODD_SERVER, marks], permission_class: "host", ...server };
  await writeFile(join(place.folder, "odd", "plugin.json"), JSON.stringify({ name: "odd", mcp_servers: { odd } }));
}

/** Accepts the plugin with what its server is known to list, as `reeve plugin accept` does. */
async function accept(): Promise<void> {
  const read = await readPlugin(join(place.folder, "odd"));
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  const { plugin } = read;
  const found = (await readFound(place.foundFile)).get("odd");
  const { tools } = serverTools(plugin.manifest, found?.digest === plugin.digest ? found.servers : new Map());
  await replaceFile(place.acceptedFile, acceptedText(new Map([["odd", acceptanceOf(plugin, 0, tools)]])));
}

async function open(machine: Partial<PluginMachine> = {}): Promise<ToolProvider> {
  provider?.[Symbol.dispose]();
  const executor = createLocalExecutor({ env: process.env, killGraceMs: 200 });
  provider = await openPluginTools(place, { executor, env: {}, ...machine }, { refreshMs: 20 });
  return provider;
}

/** Opens the provider with everything of the plugin accepted. */
async function openAccepted(server: JsonObject = {}, machine: Partial<PluginMachine> = {}): Promise<void> {
  await write(server);
  await accept();
  await open(machine);
  await eventually(async () => expect((await readFound(place.foundFile)).size).toBe(1));
  await accept();
  await eventually(() => expect(names()).toContain("odd:echo"));
}

const collected = () => collectTools(provider === undefined ? [] : [provider.provided()]);
const names = () => collected().tools.map(({ spec }) => spec.name);
const whyOf = (tool: string) => collected().unavailable.find((one) => one.tool === tool)?.why;

async function call(tool: string, args: JsonObject = {}, changes: Partial<ToolContext> = {}): Promise<JsonObject> {
  const found = collected().tools.find(({ spec }) => spec.name === `odd:${tool}`);
  const prepared = found?.prepare(args);
  if (prepared?.ok !== true) throw new Error(`${tool} is not offered or refuses its input: ${whyOf(`odd:${tool}`)}`);
  return prepared.run({ ...scene.context, ...changes });
}

const marked = async (name: string): Promise<number[]> =>
  (await readFile(join(marks, name), "utf8").catch(() => "")).split("\n").filter(Boolean).map(Number);

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe("the tools of an MCP server", () => {
  test("are found, and not offered before their owner has accepted them", async () => {
    await write();
    await open();
    expect(whyOf("odd")).toContain("was not accepted");
    await accept();
    await eventually(() => expect(whyOf("odd:echo")).toContain("lists it, and it was not accepted"));
    expect(names()).toEqual([]);
    await accept();
    await eventually(() => expect(names()).toContain("odd:flood_line"));
  });

  test("are as the server describes them, and what it claims of them decides nothing", async () => {
    await openAccepted();
    const echo = collected().tools.find(({ spec }) => spec.name === "odd:echo")?.spec;
    expect(echo).toMatchObject({
      description: "Says it again.",
      capabilities: ["odd:echo"],
      annotations: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
      inputSchema: { properties: { text: { type: "string" } } },
    });
    expect(whyOf("odd:loop")).toContain("refers back to itself");
    expect(collected().unavailable.map(({ why }) => why)).toContain("its name cannot be one here");
  });

  test("only read where the plugin says so", async () => {
    await openAccepted({ read_only: ["echo"] });
    const spec = (name: string) => collected().tools.find((one) => one.spec.name === name)?.spec.annotations;
    expect(spec("odd:echo")).toMatchObject({ readOnly: true, destructive: false });
    expect(spec("odd:pid")).toMatchObject({ readOnly: false, destructive: true });
  });

  test("are offered after a restart without running the server, which is started when it is called", async () => {
    await openAccepted();
    const [first = 0] = await marked("started");
    provider?.[Symbol.dispose]();
    await eventually(() => expect(isAlive(first)).toBe(false));
    await open();
    expect(names()).toContain("odd:echo");
    expect(await marked("started")).toHaveLength(1);
    expect(await call("echo", { text: "x" })).toEqual({ content: [{ type: "text", text: "x" }], truncated: false });
    expect(await marked("started")).toHaveLength(2);
  });

  test("that change have to be accepted again, and are not called before", async () => {
    await openAccepted();
    await call("change");
    await eventually(() => expect(whyOf("odd:echo")).toContain("in another way than it was accepted"));
    expect(names()).toContain("odd:pid");
    await accept();
    await eventually(() => expect(names()).toContain("odd:echo"));
    await expect(call("echo", { text: "long" })).rejects.toThrow("refuses its input");
    expect(await call("echo", { text: "abc" })).toMatchObject({ content: [{ text: "abc" }] });
  });

  test("that changed while the server did not run are not called", async () => {
    await openAccepted();
    provider?.[Symbol.dispose]();
    await writeFile(join(marks, "changed"), "");
    await open();
    expect(await faultOf(call("echo", { text: "x" }))).toMatchObject({
      reason: ErrorReason.NOT_AVAILABLE,
      message: expect.stringContaining("as it was accepted any more, so nothing ran") as string,
    });
    await eventually(() => expect(whyOf("odd:echo")).toContain("in another way"));
  });
});

describe("a call", () => {
  test("that fails at the server has failed, with its words cleaned", async () => {
    await openAccepted();
    expect(await faultOf(call("fail"))).toEqual({
      reason: ErrorReason.TOOL_FAILED,
      metadata: { service: "odd/odd", code: "tool_error" },
      message: "it failed",
    });
    expect(await faultOf(call("ask"))).toMatchObject({ reason: ErrorReason.TOOL_FAILED });
  });

  test("is canceled at the server when it is canceled or late, and shows progress meanwhile", async () => {
    await openAccepted();
    const { signal, ...stop } = abortable();
    const late = faultOf(call("slow", {}, { signal }));
    await eventually(() => expect(scene.live.stderr).toMatch(/^1\/200 step\n2\/200 step\n/));
    stop.abort();
    expect(await late).toMatchObject({ reason: ErrorReason.CANCELED });
    await eventually(async () => expect(await marked("asked-to-stop")).toHaveLength(1));
    const time = abortable();
    const over = faultOf(call("slow", {}, { signal: time.signal, timeoutMs: 300 }));
    await eventually(() => expect(scene.live.stderr.match(/^1\/200/gm)).toHaveLength(2));
    time.abort(new DOMException("", "TimeoutError"));
    expect(await over).toMatchObject({
      reason: ErrorReason.TIMED_OUT,
      metadata: { timeout_ms: "300" },
    });
    await eventually(async () => expect(await marked("asked-to-stop")).toHaveLength(2));
    // The server itself goes on.
    expect(await call("echo", { text: "x" })).toMatchObject({ content: [{ text: "x" }] });
    expect(await marked("started")).toHaveLength(1);
  });

  test("of a server that dies is unknown, and the next one starts it again", async () => {
    await openAccepted();
    expect(await faultOf(call("die"))).toMatchObject({
      reason: ErrorReason.INTERRUPTED,
      message: expect.stringMatching(/odd\/odd ended while the call was with it.*SIGKILL/) as string,
    });
    expect(await call("echo", { text: "back" })).toMatchObject({ content: [{ text: "back" }] });
    expect(await marked("started")).toHaveLength(2);
  });

  test("of a server that cannot be started is tried twice, and then only after a while", async () => {
    let opened = 0;
    using server = createMcpServer({
      service: "odd/odd",
      open: () => {
        opened++;
        return Promise.reject(new Error("no \u001b[31msuch program"));
      },
      isListed: () => true,
      onChange: () => undefined,
    });
    const tool = { name: "echo" } as ServerTool;
    for (const words of ["no such program", "no such program", "it is tried again in 1 s"])
      expect(await faultOf(server.call(tool, {}, scene.context))).toMatchObject({
        reason: ErrorReason.START_FAILED,
        metadata: { program: "odd/odd" },
        message: expect.stringContaining(words) as string,
      });
    expect(opened).toBe(2);
    // Discovery keeps to it as well.
    await server.discover();
    expect(opened).toBe(2);
  });

  test.each([
    ["a message without an end", "flood_line", /printed a message of more than 4194304 bytes/],
    ["news that no request asked for", "flood_news", /printed more than it was asked for/],
  ])("of a server that floods with %s ends, and so does the server", async (_, tool, why) => {
    await openAccepted();
    const [pid = 0] = await marked("started");
    expect(await faultOf(call(tool))).toMatchObject({
      reason: ErrorReason.INTERRUPTED,
      message: expect.stringMatching(why) as string,
    });
    await eventually(() => expect(isAlive(pid)).toBe(false));
    expect(await call("echo", { text: "x" })).toMatchObject({ content: [{ text: "x" }] });
  });

  test("has its long text cut", async () => {
    await openAccepted();
    const { content, truncated } = await call("big");
    expect(truncated).toBe(true);
    expect(JSON.stringify(content).length).toBeLessThan(300_000);
  });

  test("of a program that is no server is not possible, and why is known", async () => {
    await write({ args: ["-e", "console.error('no \u001b[31mkey'); process.exit(3)"] });
    await accept();
    await open();
    await eventually(() => expect(whyOf("odd:odd")).toContain("ended with exit code 3; it had said: no key"));
    expect(names()).toEqual([]);
  });

  test("of a program that answers nothing, or no MCP, is given up", async () => {
    const program = await createLocalExecutor({ env: process.env, killGraceMs: 200 }).open({
      argv: ["/bin/sh", "-c", "echo hello; exec sleep 60"],
      cwd: folder,
    });
    const connecting = connect({
      service: "odd/odd",
      place: { program },
      isLegacy: false,
      onListChanged: () => undefined,
      stepMs: 100,
    });
    await expect(connecting).rejects.toThrow("timed out");
    await eventually(() => expect(isAlive(program.pid)).toBe(false));
  });
});

describe("a server at an address", () => {
  const headers: (string | undefined)[] = [];
  let http: HttpServer;
  let url: string;
  beforeEach(async () => {
    headers.length = 0;
    const handler = createMcpHandler(() => {
      const server = new Server({ name: "web", version: "1" }, { capabilities: { tools: {} } });
      const tool = (name: string) => ({ name, inputSchema: { type: "object" as const } });
      server.setRequestHandler("tools/list", () => ({ tools: [tool("echo"), tool("flood")] }));
      server.setRequestHandler("tools/call", ({ params }) => ({
        content: [{ type: "text", text: params.name === "echo" ? "from the web" : "x".repeat(9 * 1024 * 1024) }],
      }));
      return server;
    });
    http = createServer((request, response) => {
      headers.push(request.headers.authorization);
      void answer(handler, request, response);
    });
    await new Promise<void>((resolve) => void http.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  });
  afterEach(() => {
    http.closeAllConnections();
    http.close();
  });

  /** A plugin with this address and one secret of the agent's environment. */
  async function openWeb(): Promise<void> {
    const odd = { url, headers: { authorization: `Bearer \${TOKEN}` } };
    const manifest = { name: "odd", env_allow: ["TOKEN"], mcp_servers: { odd } };
    await writeFile(join(place.folder, "odd", "plugin.json"), JSON.stringify(manifest));
    await accept();
    await open({ env: { TOKEN: "secret" } });
    await eventually(async () => expect((await readFound(place.foundFile)).size).toBe(1));
    await accept();
    await eventually(() => expect(names()).toContain("odd:echo"));
  }

  test("is called with its headers, and is kept apart from nothing", async () => {
    await openWeb();
    expect(await call("echo")).toMatchObject({ content: [{ text: "from the web" }] });
    expect(new Set(headers)).toEqual(new Set(["Bearer secret"]));
    expect(collected().tools[0]?.elsewhere).toBe("none");
  });

  test("that cannot be reached has not run anything", async () => {
    await openWeb();
    http.closeAllConnections();
    await new Promise((resolve) => void http.close(resolve));
    expect(await faultOf(call("echo"))).toMatchObject({
      reason: ErrorReason.START_FAILED,
      metadata: { program: "odd/odd", cause: "ECONNREFUSED" },
    });
  });

  test("that answers without end is cut off, and what it did is not known", async () => {
    await openWeb();
    expect(await faultOf(call("flood"))).toMatchObject({ reason: ErrorReason.INTERRUPTED });
  });
});

describe.runIf(HAS_BWRAP)("in the sandbox", () => {
  test("a server sees and changes only what its class lets it, and its calls say the level", async () => {
    await using sandbox = await openTestSandbox();
    marks = sandbox.work;
    await writeFile(join(place.folder, "odd", "server.py"), BOXED);
    const args = ["./server.py", sandbox.work, join(sandbox.outside, "c.txt")];
    const server = { command: "/usr/bin/python3", args, permission_class: "workspace" };
    await openAccepted(server, { executor: sandbox.executor });
    expect(await call("echo")).toMatchObject({
      content: [{ text: "outside: FileNotFoundError, state: PermissionError, network: []" }],
    });
    expect(collected().tools[0]?.elsewhere).toBe("workspace");
  });
});

/** A server of the old generation without packages: a sandbox shows the system's programs, and not those of a checkout. */
const BOXED = `
import json, os, sys
work, outside = sys.argv[1:]
with open(work + "/started", "a") as file:
    file.write(f"{os.getpid()}\\n")
def code(path):
    try:
        return open(path).read()
    except OSError as error:
        return type(error).__name__
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    method, id = request["method"], request.get("id")
    if method == "initialize":
        version = request["params"]["protocolVersion"]
        send(id=id, result={"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "boxed", "version": "1"}})
    elif method == "tools/list":
        send(id=id, result={"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        links = [name for name in os.listdir("/sys/class/net") if name != "lo"] if os.path.exists("/sys/class/net") else []
        text = f"outside: {code(outside)}, state: {code(work + '/state/device.key')}, network: {links}"
        send(id=id, result={"content": [{"type": "text", "text": text}]})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "unknown"})
`;

function abortable() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: (reason?: Error) => controller.abort(reason) };
}

/** Answers a request of node with a handler of the Fetch API. */
async function answer(
  handler: { fetch(request: Request): Promise<Response> },
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await Array.fromAsync(request as AsyncIterable<Buffer>);
  const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
  const init = { method: request.method ?? "GET", headers, ...(body.length > 0 ? { body: Buffer.concat(body) } : {}) };
  const answered = await handler.fetch(new Request(`http://127.0.0.1${request.url}`, init));
  response.writeHead(answered.status, Object.fromEntries(answered.headers));
  response.end(Buffer.from(await answered.arrayBuffer()));
}
