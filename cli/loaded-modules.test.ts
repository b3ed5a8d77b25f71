import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const LAUNCHER = fileURLToPath(new URL("../bin/reeve.js", import.meta.url));

/** Prints the URL of every module that is loaded. */
const HOOK = `import { registerHooks } from "node:module";
import { writeSync } from "node:fs";
registerHooks({ load(url, context, next) { writeSync(1, url + "\\n"); return next(url, context); } });`;

/** Loading a module is most of what a short command costs. */
const OF_SERVERS =
  /node_modules\/(kysely|pg|nats|pino|ajv|prom-client|@anthropic-ai|openai)\/|\/services\/|node:sqlite/;

/** The modules that a command loads. */
async function loadedBy(command: readonly string[], more: Record<string, string> = {}): Promise<string[]> {
  const env = { ...process.env, REEVE_REGISTRY_URL: "http://127.0.0.1:9", REEVE_POLICY_URL: "http://127.0.0.1:9" };
  const args = ["--import", `data:text/javascript,${encodeURIComponent(HOOK)}`, LAUNCHER, ...command];
  const loaded = await new Promise<string>((resolve) => {
    execFile(process.execPath, args, { env: { ...env, REEVE_TOKEN: "rv_000000000000_none", ...more } }, (_, out) =>
      resolve(out),
    );
  });
  return loaded.split("\n");
}

test.each([
  ["tool", "list"],
  ["call", "this", "exec", "--", "true"],
  ["call", "list"],
  ["device", "list"],
  ["approval", "list"],
])("reeve %s %s loads nothing that only servers need", async (...command) => {
  const urls = await loadedBy(command);
  expect(urls.some((url) => url.includes("/connect-node/"))).toBe(true);
  expect(urls.filter((url) => OF_SERVERS.test(url))).toEqual([]);
});

test.each([
  ["anthropic/any", "@anthropic-ai/sdk", "openai"],
  ["ollama/any", "openai", "@anthropic-ai/sdk"],
])("reeve chat --model %s loads %s and not %s", async (model, used, other) => {
  const urls = await loadedBy(["chat", "--model", model, "hi"], { ANTHROPIC_API_KEY: "none" });
  expect(urls.some((url) => url.includes(`/node_modules/${used}/`))).toBe(true);
  expect(urls.some((url) => url.includes(`/node_modules/${other}/`))).toBe(false);
});
