// An MCP server that does what none should: the tests call its tools. Its arguments: the folder that it leaves marks in.
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type CallToolResult, Server, type ServerContext, type Tool } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const folder = process.argv[2] ?? ".";
const mark = (name: string): void => appendFileSync(join(folder, name), `${process.pid}\n`);
const text = (...texts: string[]): CallToolResult => ({ content: texts.map((one) => ({ type: "text", text: one })) });

/** Whether it describes `echo` in another way. It stays so after a restart. */
const isChanged = (): boolean => existsSync(join(folder, "changed"));

function tools(): Tool[] {
  const tool = (name: string, properties: Tool["inputSchema"]["properties"] = {}): Tool => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: "object", properties, additionalProperties: false },
    annotations: { readOnlyHint: true },
  });
  return [
    {
      ...tool("echo", { text: { type: "string", ...(isChanged() ? { maxLength: 3 } : {}) } }),
      description: "Says it\u001b[31m again.",
    },
    ...["die", "flood-line", "flood-news", "escape", "fail", "slow", "change", "ask", "big", "pid"].map((name) =>
      tool(name),
    ),
    { name: "loop", inputSchema: { type: "object", $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } } },
    { name: "Söme name", inputSchema: { type: "object" } },
  ];
}

const actions: Record<string, (args: Record<string, unknown>, ctx: ServerContext) => unknown> = {
  echo: (args) => text(String(args.text)),
  pid: () => text(String(process.pid)),
  die() {
    mark("died");
    process.kill(process.pid, "SIGKILL");
    return sleep(60_000);
  },
  async "flood-line"() {
    const chunk = "x".repeat(64 * 1024);
    for (;;) await new Promise((resolve) => void process.stdout.write(chunk, resolve));
  },
  async "flood-news"() {
    const line = `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } })}\n`;
    for (;;) await new Promise((resolve) => void process.stdout.write(line.repeat(100), resolve));
  },
  escape: () => ({
    ...text("\u001b]0;title\u0007red \u001b[31mtext\u001b[0m"),
    structuredContent: { key: "\u001b[2Jvalue" },
  }),
  fail: () => ({ ...text("it \u001b[31mfailed"), isError: true }),
  async slow(_, { mcpReq }) {
    mark("began");
    mcpReq.signal.addEventListener("abort", () => mark("asked-to-stop"));
    for (let step = 1; step <= 200 && !mcpReq.signal.aborted; step++) {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined)
        await mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress: step, total: 200, message: "step\u001b[31m" },
        });
      await sleep(50);
    }
    return text("done");
  },
  change() {
    mark("changed");
    for (const server of open) void server.sendToolListChanged();
    return text("changed");
  },
  ask: () => ({ resultType: "input_required", inputRequests: {}, requestState: "x" }),
  big: () => text("a".repeat(1_000_000)),
};

const open = new Set<Server>();
serveStdio(() => {
  const server = new Server({ name: "odd", version: "1" }, { capabilities: { tools: { listChanged: true } } });
  open.add(server);
  server.setRequestHandler("tools/list", () => ({ tools: tools() }));
  server.setRequestHandler("tools/call", async ({ params }, ctx) => {
    const act = actions[params.name];
    if (act === undefined) throw new Error("no such tool");
    return (await act(params.arguments ?? {}, ctx)) as CallToolResult;
  });
  return server;
});
mark("started");
