import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import type { Plan, PlanCommand, PlanWord } from "../../../../lib/command/plan/plan.ts";
import { planScript } from "./script.ts";

const folder = mkdtempSync(join(tmpdir(), "reeve-script-"));
for (const name of ["a.txt", "b.txt", "it's", "[x]", "-n", "$(id)", "x!y", "\u{1f642}.md"])
  writeFileSync(join(folder, name), name);
afterAll(() => rmSync(folder, { recursive: true }));

const command = (exe: string, words: PlanWord[], redir: PlanCommand["redir"] = []): PlanCommand => ({
  exe,
  argv: [exe.replace(/^.*\//, ""), ...words],
  redir,
  sandbox: "optional",
});
const plan = (...pipes: PlanCommand[][]): Plan => ({ v: 1, items: pipes.map((pipe) => ({ op: ";", pipe })) });

/** Prints each argument in brackets, so that their borders show. */
const shown = (...words: PlanWord[]): string => run(plan([command("/usr/bin/printf", ["[%s]", ...words])]));

function run(planned: Plan): string {
  return execFileSync("/usr/bin/bash", ["--noprofile", "--norc", "-c", "--", planScript(planned)], {
    cwd: folder,
    encoding: "utf8",
    env: {},
    input: "",
  });
}

describe("a plan's script", () => {
  it.each([
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "a'b",
    "'; touch pwned; '",
    '"',
    "\\",
    "a\nb",
    "*",
    "~",
    "{a,b}",
    "!x",
    "-n",
    "#",
    "",
    " ",
    "$'\\x41'",
    "a=b",
    "<(id)",
    "é\u00a0漢",
  ])("hands the word %j on as it is", (word) => {
    expect(shown(word)).toBe(`[${word}]`);
  });

  it.each([
    ["*.txt", "[a.txt][b.txt]"],
    ["[ab].txt", "[a.txt][b.txt]"],
    ["[!a].txt", "[b.txt]"],
    ["[a-b].t?t", "[a.txt][b.txt]"],
    ["x\\!*", "[x!y]"],
    ["it\\'*", "[it's]"],
    ["\\[x*", "[[x]]"],
    ["\\$\\(*", "[$(id)]"],
    ["\u{1f642}*", "[\u{1f642}.md]"],
    ["none*", "[none*]"],
    ["no$(id)*", "[no$(id)*]"],
    ["a;id*", "[a;id*]"],
    ["a b*", "[a b*]"],
  ])("expands the pattern %j to %s", (glob, names) => {
    expect(shown({ glob })).toBe(names);
  });

  it("runs files, not builtins or functions", () => {
    expect(planScript(plan([command("/usr/bin/echo", ["x"])]))).toBe("(exec -a 'echo' '/usr/bin/echo' 'x')");
    expect(run(plan([command("/usr/bin/env", ["true"]), command("/usr/bin/cat", [])]))).toBe("");
  });

  it("joins with pipes, conditions and folders, and redirects", () => {
    const [fail, hi, count] = [
      command("/usr/bin/false", []),
      command("/usr/bin/echo", ["hi"]),
      command("/usr/bin/wc", ["-l"]),
    ];
    const items: Plan["items"] = [
      { op: ";", cd: "/usr" },
      { op: "&&", pipe: [command("/usr/bin/pwd", [])] },
      { op: ";", pipe: [fail] },
      { op: "||", pipe: [hi, count] },
      {
        op: ";",
        pipe: [
          command(
            "/usr/bin/ls",
            ["/none"],
            [
              [2, 1],
              [1, "null"],
            ],
          ),
        ],
      },
    ];
    expect(run({ v: 1, items: [...items, { op: "||", pipe: [hi] }] })).toContain("/usr\n1\n");
    expect(run(plan([command("/usr/bin/cat", [], [[0, "text", "it's\n$x\n"]])]))).toBe("it's\n$x\n");
    expect(run(plan([command("/usr/bin/cat", [], [[0, "text", ""]])]))).toBe("");
    expect(run(plan([command("/usr/bin/cat", [], [[0, "file", "it's"]])]))).toBe("it's");
  });

  it("is not made of what it does not know", () => {
    expect(() => planScript(plan([command("/usr/bin/ls", [{ home: "/x" }])]))).toThrow("home folder");
    expect(() => planScript(plan([command("/usr/bin/cat", [], [[0, "text", "no end"]])]))).toThrow("line end");
  });
});
