import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

/** Prints the URL of every module that is loaded. */
const HOOK = `import { registerHooks } from "node:module";
import { writeSync } from "node:fs";
registerHooks({ load(url, context, next) { writeSync(1, url + "\\n"); return next(url, context); } });`;

test("a registry loads the SDK of MCP when a client asks, and not when it starts", async () => {
  const service = new URL("../../service.ts", import.meta.url).href;
  const hook = `data:text/javascript,${encodeURIComponent(HOOK)}`;
  const args = ["--import", hook, "--input-type=module", "-e", `await import(${JSON.stringify(service)})`];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 16 * 1024 * 1024 });
  const urls = stdout.split("\n");
  expect(urls.some((url) => url.endsWith("/faces/mcp/mcp-face.ts"))).toBe(true);
  expect(urls.filter((url) => url.includes("/@modelcontextprotocol/"))).toEqual([]);
});
