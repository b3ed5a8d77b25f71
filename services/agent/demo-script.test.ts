import type { JsonObject } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import { wrapUntrusted } from "../../lib/model-tools/envelope.ts";
import { demoPrompt, demoTurns } from "./demo-script.ts";
import { runInline } from "./loop/run-inline.ts";
import { createAnthropicModel } from "./providers/anthropic/adapter.ts";
import { newRunInput } from "./run-input/run-input.ts";
import { type ScriptedModel, startScriptedModel } from "./scripted-model/server.ts";
import { devicelessToolset } from "./testdata/deviceless-toolset.ts";
import type { ToolCaller } from "./toolbox/followed-toolbox.ts";
import type { ToolResult } from "./toolbox/toolbox.ts";

let server: ScriptedModel | undefined;
afterEach(() => server?.close());

const options = { folder: "/srv/it's data", reportPath: "/srv/out/report.md" };
const DF = `Filesystem     1K-blocks     Used Available Use% Mounted on
/dev/sda1       41152812 28806968  10225812  74% /
tmpfs             812345        0    812345   0% /run
/dev/sdb1      103081248  1024000  96780848   2% /data`;
const DU = "8192\t/srv/it's data/logs\n4\t/srv/it's data/empty\n8200\t/srv/it's data\n";
const LARGEST = "8.1M\t/srv/it's data\n8.0M\t/srv/it's data/logs/big.log\n";

const success = (output: JsonObject): ToolResult => ({
  content: wrapUntrusted(JSON.stringify(output), 'device "laptop"'),
  isError: false,
});
const blocked: ToolResult = { content: "error: policy_blocked: never\nrules: block-recursive-delete", isError: true };

/** Tools that answer as a device would. */
function caller(
  used: [string, JsonObject][],
  pipe: ToolResult = success({ stdout: LARGEST, exitCode: 0 }),
): ToolCaller {
  const answers: Record<string, (input: JsonObject) => ToolResult> = {
    exec: ({ argv }) => success({ stdout: Array.isArray(argv) && argv[0] === "df" ? DF : DU }),
    "fs.list": () => success({ entries: [{ path: "logs" }, { path: "empty" }] }),
    "shell.eval": ({ command }) => (command === "rm -rf /" ? blocked : pipe),
    "fs.write": () => success({ bytesWritten: "1", created: true }),
  };
  return {
    async call({ name, input }) {
      used.push([name, input]);
      return answers[name]?.(input) ?? blocked;
    },
  };
}

async function run(pipe?: ToolResult) {
  const started = await startScriptedModel({ turns: demoTurns(options) });
  server = started;
  const used: [string, JsonObject][] = [];
  const model = createAnthropicModel({ apiKey: "demo", model: "any", baseUrl: started.url });
  const toolset = devicelessToolset(["exec", "fs.list", "shell.eval", "fs.write"]);
  const input = newRunInput({ runId: "run-1", toolset, prompt: demoPrompt(options) });
  const result = await runInline(input, { model, caller: caller(used, pipe) });
  expect(started.problems).toEqual([]);
  return { result, used, report: used.at(-1)?.[1].text };
}

describe("the demonstration", () => {
  it("measures, is refused once, and writes a report of what was really measured", async () => {
    const { result, used, report } = await run();
    expect(result).toMatchObject({ kind: "done", turns: 6 });
    expect(result.text).toBe("The report is in /srv/out/report.md. It names what is largest; nothing was deleted.");
    expect(used.map(([name]) => name)).toEqual(["exec", "fs.list", "exec", "shell.eval", "shell.eval", "fs.write"]);
    expect(used[3]?.[1]).toEqual({
      command: "for part in '/srv/it'\\''s data'/*; do du -ah \"$part\"; done | sort -rh | head -n 10",
    });
    expect(used[5]?.[1]).toMatchObject({ path: "/srv/out/report.md", mode: "WRITE_MODE_CREATE" });
    expect(report).toContain("| / | 39.2 GiB | 27.5 GiB | 74% |\n| /data | 98.3 GiB | 1000.0 MiB | 2% |");
    expect(report).toContain("It has 2 entries.");
    expect(report).toContain("| /srv/it's data/logs | 8.0 MiB |");
    expect(report).toContain("8.0M\t/srv/it's data/logs/big.log");
    expect(report).toContain("A destructive command was refused: error: policy_blocked: never");
  });

  it("says in the report what was not measured and why", async () => {
    const { report } = await run({ content: "error: approval_denied: not today", isError: true });
    expect(report).toContain("Not measured: error: approval_denied: not today");
  });
});
