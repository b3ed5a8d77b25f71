import { afterAll, beforeAll, expect, test } from "vitest";
import { createLogger } from "../../lib/log/log.ts";
import { startScriptedModel } from "../../services/agent/scripted-model/server.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";
import { readProfile } from "../profile.ts";
import { runInFake } from "../testing/fake-context.ts";

let stack: TestStack;
const lines: { level: string; msg: string }[] = [];
beforeAll(async () => {
  const destination = { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) };
  stack = await startTestStack({ logger: createLogger({ service: "test", destination }) });
});
afterAll(() => stack.close());

/** Each RPC that has ended, by the code that it ended with. */
async function ended(): Promise<string[]> {
  const profile = await readProfile(stack.dataFolder);
  const texts = await Promise.all(
    [profile?.registry, profile?.policy].map(async (url) => (await fetch(`${url}/metrics`)).text()),
  );
  return [...texts.join("\n").matchAll(/^reeve_rpc_total\{.*method="(\w+)",code="(\w+)"\} \d+$/gm)].map(
    ([, method, code]) => `${method} ${code}`,
  );
}

test("a call of the command line, and a chat, that end normally are no departures and no errors", async () => {
  const { agent, owner } = stack;
  const model = await startScriptedModel({
    turns: [{ toolUses: [{ name: "exec", input: { argv: ["uname"] } }] }, { text: "Linux" }],
  });
  const env = { NO_COLOR: "1", ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: model.url };
  expect((await runInFake(["call", "this", "device.ping", "--text", "hi"], { env: agent })).code).toBe(0);
  expect((await runInFake(["call", "this", "fs.read", "--path", "/none"], { env: agent })).code).not.toBe(0);
  expect((await runInFake(["chat", "what", "is", "it"], { env: { ...owner, ...env } })).code).toBe(0);
  await model.close();
  await eventually(async () => expect((await ended()).join()).toContain("CallTools"));
  expect((await ended()).filter((one) => !one.endsWith(" ok"))).toEqual([]);
  expect(lines.filter(({ level }) => level === "error")).toEqual([]);
});
