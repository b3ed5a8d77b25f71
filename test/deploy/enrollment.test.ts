import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { nodeEnv } from "../../testkit/node-env.ts";

/** The page's blocks of commands, in their order, each with who runs them. */
const BLOCKS = [
  ...readFileSync(join(repositoryRoot, "deploy", "ENROLLMENT.md"), "utf8").matchAll(/```sh\n# (.*)\n([^`]*)```/g),
].map(([, heading = "", commands = ""]) => ({
  who: heading.startsWith("machine") ? ("machine" as const) : ("control plane" as const),
  stays: /runs until Ctrl-C|waits until/.test(heading),
  ends: heading.includes("waits until"),
  commands: commands.trim(),
}));

let folder: string;
const homes = { machine: "", "control plane": "" };
const running: Running[] = [];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-page-"));
  for (const who of ["machine", "control plane"] as const) {
    homes[who] = join(folder, who.replace(" ", "-"));
    await mkdir(join(homes[who], "work"), { recursive: true });
  }
});
afterAll(async () => {
  for (const one of running.toReversed()) await one.stop();
  await rm(folder, { recursive: true, force: true });
});

/** What the page says in words, as variables: what a person carries from one machine to the other. */
const carried: Record<string, string> = {};

/** What the operator has set. */
const operator: Record<string, string> = {};

test("the page's commands, run block by block in two homes, make a machine a device", async () => {
  const [port = 0] = await freePorts(1);
  carried.WORK = join(homes.machine, "work");
  const shown: string[] = [];
  for (const { who, stays, ends, commands } of BLOCKS) {
    const here = commands.replaceAll("127.0.0.1:7443", `127.0.0.1:${port} --port 0`);
    if (stays) {
      if (who === "machine") await running.findLast((one) => one.who === "machine")?.stop();
      const started = start(who, here, ends);
      running.push(started);
      await eventually(() => expect(started.text()).toMatch(READY[who]));
      if (who === "control plane") operator.REEVE_TOKEN ??= /^ *operator +(rv_\S+)/m.exec(started.text())?.[1] ?? "";
      carried.FINGERPRINT ??= /(?:[0-9A-F]{2}:){31}[0-9A-F]{2}/.exec(started.text())?.[0] ?? "";
      if (carried.FINGERPRINT === "") delete carried.FINGERPRINT;
      continue;
    }
    // The machine was let in a moment ago: it fetches its certificate and dials.
    if (commands.startsWith("reeve device list")) await online("laptop");
    const { code, stdout, stderr } = await run(who, here);
    expect(code, `${commands}\n${stdout}\n${stderr}`).toBe(0);
    carried.TOKEN ??= /rvj1\.\S+/.exec(stdout)?.[0] ?? "";
    shown.push(stdout);
  }
  const all = shown.join("\n");
  expect(all).toContain("laptop");
  expect(all).toContain("Linux");
  expect(all).toMatch(/enrolled/i);
  expect(BLOCKS.length).toBeGreaterThan(7);
});

/** What each long-running command says when the next step can be taken. */
const READY = { "control plane": /Ctrl-C ends it/, machine: /(?:[0-9A-F]{2}:){31}[0-9A-F]{2}|"msg":"ready"|attached/ };

interface Running {
  who: string;
  text(): string;
  stop(): Promise<void>;
}

/** @param typed what is typed in. Default nothing. */
function shell(who: keyof typeof homes, commands: string, detached: boolean, typed = ""): ChildProcess {
  const reeve = `reeve() { ${JSON.stringify(process.execPath)} ${JSON.stringify(join(repositoryRoot, "cli", "main.ts"))} "$@"; }`;
  const script = `${reeve}\nset -e\n${commands}`;
  const env = { ...nodeEnv(), ...carried, ...(who === "machine" ? {} : operator), HOME: homes[who] };
  const child = spawn("bash", ["-c", script], { env, cwd: homes[who], stdio: "pipe", detached });
  child.stdin.on("error", () => undefined); // it may not read
  child.stdin.end(typed);
  return child;
}

/** @param ends whether the commands end by themselves. */
function start(who: keyof typeof homes, commands: string, ends: boolean): Running {
  const child = shell(who, commands, true, `${carried.TOKEN ?? ""}\n`);
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (data: Buffer) => (text += data.toString()));
  const gone = once(child, "exit");
  return {
    who,
    text: () => text,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
      // Ctrl-C goes to everything that runs in the terminal.
      if (!ends) process.kill(-child.pid, "SIGINT");
      await gone;
    },
  };
}

async function run(who: keyof typeof homes, commands: string) {
  const child = shell(who, commands, false);
  let [stdout, stderr] = ["", ""];
  child.stdout?.on("data", (data: Buffer) => (stdout += data.toString()));
  child.stderr?.on("data", (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, stdout, stderr };
}

async function online(name: string): Promise<void> {
  await eventually(async () =>
    expect((await run("control plane", "reeve device list")).stdout).toMatch(new RegExp(`${name}.*online`, "i")),
  );
}
