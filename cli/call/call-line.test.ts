import { describe, expect, it } from "vitest";
import { callLine } from "./call-line.ts";

describe("a call in one line", () => {
  it.each([
    ["exec", { argv: ["uname", "-a"] }, "exec uname -a"],
    ["exec", { argv: ["sh", "-c", "echo it's; ls"] }, "exec sh -c 'echo it'\\''s; ls'"],
    ["exec", { argv: ["env"], env: { KEY: "[redacted]" } }, 'exec env env={"KEY":"[redacted]"}'],
    ["shell.eval", { command: "ls\n-l", cwd: "/tmp" }, "shell.eval 'ls\\n-l' cwd=/tmp"],
    ["fs.write", { text: "hello there", path: "/tmp/a" }, "fs.write /tmp/a text='hello there'"],
    ["proc.kill", { pid: 12, signal: "SIGNAL_KILL" }, "proc.kill 12 signal=SIGNAL_KILL"],
    ["device.info", {}, "device.info"],
    ["exec", undefined, "exec"],
  ])("%s %j", (tool, args, line) => {
    expect(callLine(tool, args)).toBe(line);
  });

  it("shows both ends of a long one, and nothing that a terminal would act on", () => {
    const line = callLine("shell.eval", { command: `first\u001b[2J${"x".repeat(500)}last` });
    expect(Array.from(line)).toHaveLength(60);
    expect(line).toMatch(/^shell\.eval 'first\\x1b\[2Jx+…x+last'$/);
  });
});
