import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { processContext } from "../../cli/command-context.ts";
import { commandList } from "../../cli/command-list.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { nodeEnv } from "../../testkit/node-env.ts";

const PAGES = globSync("{README.md,deploy/**/*.md,examples/**/*.md,services/**/*.md,bench/*.md}", {
  cwd: repositoryRoot,
});

/** Where commands stand that a person may type: pages, comments, help, messages, and what starts services. */
const SOURCES = globSync("{README.md,{cli,services,lib,client,examples,deploy}/**/*.{ts,md,sh,yaml,service}}", {
  cwd: repositoryRoot,
}).filter((path) => !path.includes(".test."));

/** The blocks of a page that are marked to be run. */
const blocksOf = (page: string) =>
  [...readFileSync(join(repositoryRoot, page), "utf8").matchAll(/<!-- run -->\n```sh\n([^`]*)```/g)].map(
    ([, commands = ""]) => commands,
  );

describe("the commands of the pages, against a default start", () => {
  let home: string;
  let up: ChildProcess;
  let shown = "";
  beforeAll(async () => {
    home = await realpath(await mkdtemp(join(tmpdir(), "reeve-pages-")));
    const { scripts } = JSON.parse(readFileSync(join(repositoryRoot, "package.json"), "utf8"));
    const [, ...words] = (scripts.start as string).split(" ");
    const env = { ...nodeEnv(), HOME: home };
    up = spawn(process.execPath, [...words, "--port", "0"], {
      env,
      cwd: repositoryRoot,
      stdio: ["ignore", "pipe", "inherit"],
    });
    up.stdout?.on("data", (chunk: Buffer) => (shown += chunk.toString()));
    while (!shown.includes("Ctrl-C ends it.")) {
      if (up.exitCode !== null) throw new Error(`it ended: ${shown}`);
      await Promise.race([once(up.stdout ?? up, "data"), once(up, "exit")]);
    }
  });
  afterAll(async () => {
    up.kill("SIGINT");
    await once(up, "exit");
    await rm(home, { recursive: true });
  });

  const marked = PAGES.flatMap((page) => blocksOf(page).map((commands, at) => [page, at, commands] as const));

  test("are marked on some pages", () => {
    expect(new Set(marked.map(([page]) => page))).toEqual(new Set(["README.md", "examples/README.md"]));
  });

  test.each(marked)("%s, block %i", async (_page, _at, commands) => {
    const [, registry = ""] = /^registry +(\S+)$/m.exec(shown) ?? [];
    const [, token = ""] = /^ *operator +(rv_\S+)$/m.exec(shown) ?? [];
    const env = { ...nodeEnv(), HOME: home, ...(commands.includes("$REEVE_TOKEN") && { REEVE_TOKEN: token }) };
    const script = `set -eo pipefail\n${commands.replaceAll("http://127.0.0.1:7400", registry).replaceAll("curl -H", "curl -sSf -H")}`;
    const child = spawn("bash", ["-c", script], { env, cwd: repositoryRoot, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => (text += data.toString()));
    const [code] = (await once(child, "close")) as [number | null];
    expect(code, `${commands}\n${text}`).toBe(0);
  });
});

/** A command as it is written, such as "call list --since 12h". */
interface Written {
  path: string;
  words: string[];
}

/** Every command that stands in backquotes, or at the beginning of a line of shell. */
function writtenIn(path: string): Written[] {
  const text = readFileSync(join(repositoryRoot, path), "utf8");
  const quoted = [...text.matchAll(/\\?`(?:npx )?reeve ([a-z][^`\\$]*)\\?`/g)];
  const typed = /\.(md|sh)$/.test(path) ? [...text.matchAll(/^ *(?:npx )?reeve ([a-z].*)$/gm)] : [];
  return [...quoted, ...typed].map(([, words = ""]) => ({
    path,
    words: words
      .replace(/\s+(#|>|\|\||&&|·|;).*$/s, "")
      .split(/\s+/)
      .filter((word, index) => word !== "" && !(word === "help" && index === 0)),
  }));
}

describe("every command that is written somewhere", () => {
  const written = SOURCES.flatMap(writtenIn);

  test("is one that there is, with options that it has", async () => {
    expect(written.length).toBeGreaterThan(60);
    const program = new Command().enablePositionalOptions();
    const context = processContext();
    for (const { name, load } of commandList) {
      // Two commands may come from one file.
      if (!program.commands.some((one) => one.name() === name)) (await load())(program, context);
    }
    const wrong = written.flatMap(({ path, words }) => {
      const why = problemOf(words, program);
      return why === undefined ? [] : [`${path}: reeve ${words.join(" ")}: ${why}`];
    });
    expect(wrong).toEqual([]);
  });
});

function problemOf(words: readonly string[], program: Command): string | undefined {
  let command = program;
  let at = 0;
  for (; at < words.length; at++) {
    const next = command.commands.find((one) => one.name() === words[at]);
    if (next === undefined) break;
    command = next;
  }
  if (command === program) return "no such command";
  const word = words[at];
  const isDefault = command.name() === "call";
  const names = /^[a-z]+(\|[a-z]+)+$/.test(word ?? "") ? (word ?? "").split("|") : [];
  if (names.length > 0)
    return names.every((name) => command.commands.some((one) => one.name() === name)) ? undefined : word;
  if (command.commands.length > 0 && word !== undefined && /^[a-z]/.test(word) && !isDefault) return `no verb ${word}`;
  const target = isDefault ? command.commands.find((one) => one.name() === "run") : command;
  const known = new Set(["--help", ...(target?.options ?? []).map(({ long }) => long)]);
  const rest = words.slice(at);
  const end = rest.indexOf("--");
  const options = rest.slice(0, end < 0 ? undefined : end).filter((one) => /^--[a-z]/.test(one));
  // A tool has options of its own.
  if (target?.name() === "run" || target?.name() === "explain") return undefined;
  const unknown = options.map((one) => one.replace(/=.*/, "")).find((one) => !known.has(one));
  return unknown === undefined ? undefined : `no option ${unknown}`;
}
