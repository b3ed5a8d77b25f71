import { spawn } from "node:child_process";
import { join } from "node:path";
import { runInFake } from "../cli/testing/fake-context.ts";
import { nodeEnv } from "./node-env.ts";

/** The command line's entry, run by this very Node. */
export const CLI = join(import.meta.dirname, "..", "cli", "main.ts");

/** What a run of the command line came to. */
export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/**
 * Runs `reeve` in this process, off any terminal, with this environment only: a process of its own takes half a second of
 * processor time to load the same code.
 */
export async function runReeve(args: readonly string[], env: Record<string, string>, input = ""): Promise<CliResult> {
  return runInFake(args, { env, input });
}

/** Runs `reeve` in a process of its own, off any terminal, with this environment and PATH only. */
export async function runReeveProcess(
  args: readonly string[],
  env: Record<string, string>,
  stdin = "",
): Promise<CliResult> {
  const child = spawn(process.execPath, [CLI, ...args], { env: { ...nodeEnv(), ...env } });
  const out: Buffer[] = [];
  const err: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => out.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => err.push(chunk));
  child.stdin.on("error", () => undefined);
  child.stdin.end(stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  return { code, stdout: Buffer.concat(out).toString(), stderr: Buffer.concat(err).toString() };
}

/** The environment of a person who uses a control plane from their shell. `home` is where their profile would be. */
export function shellOf(
  plane: { registry: { url: string }; policy: { url: string } },
  token: string,
  home: string,
): Record<string, string> {
  return { HOME: home, REEVE_REGISTRY_URL: plane.registry.url, REEVE_POLICY_URL: plane.policy.url, REEVE_TOKEN: token };
}
