import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { repositoryRoot } from "./repository-root.ts";

/** How a program ended. */
export interface ToolResult {
  /** Its exit code; 1 where a signal ended it. */
  code: number;
  /** What it printed on standard output. */
  stdout: string;
  /** What it printed on standard output and standard error, in the order it came. */
  output: string;
}

/**
 * Runs a development tool to its end, with the tools and the Node of `node_modules` first on its PATH, whatever Node
 * the shell has. Rejects where the program cannot be started.
 *
 * @param cwd where it runs; default: the repository's root.
 */
export function runTool(program: string, args: readonly string[], cwd: string = repositoryRoot): Promise<ToolResult> {
  const path = [join(repositoryRoot, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const child = spawn(program, args, { cwd, stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, PATH: path } });
  const result: ToolResult = { code: 1, stdout: "", output: "" };
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    result.stdout += chunk;
    result.output += chunk;
  });
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    result.output += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ ...result, code: code ?? 1 }));
  });
}

/** Runs a development tool and returns its standard output. Rejects with what it printed where it fails. */
export async function toolOutput(program: string, args: readonly string[], cwd?: string): Promise<string> {
  const result = await runTool(program, args, cwd);
  if (result.code !== 0) throw new Error(`${program} ${args.join(" ")} failed:\n${result.output}`);
  return result.stdout;
}
