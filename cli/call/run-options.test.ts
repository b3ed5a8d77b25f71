import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { isFanOut, type RunFlags, splitWords, withRunOptions } from "./run-options.ts";

function read(...argv: string[]) {
  const command = withRunOptions(new Command())
    .exitOverride()
    .configureOutput({ outputError: () => undefined });
  command.action(() => undefined).parse(argv, { from: "user" });
  const flags = command.opts<RunFlags>();
  return { flags, ...splitWords(command.args, isFanOut(flags)) };
}

describe("a call's command line", () => {
  it("leaves the tool's words to the tool, in order", () => {
    const line = read("this", "exec", "--argv", "uname", "--wait", "5s", "--argv=-a", "--", "--json", "-h");
    expect(line).toMatchObject({ device: "this", tool: "exec", flags: { wait: 5000 } });
    expect(line.rest).toEqual(["--argv", "uname", "--argv=-a", "--", "--json", "-h"]);
    expect(line.flags).not.toHaveProperty("json");
    expect(line.flags).not.toHaveProperty("help");
  });

  it("finds the device and the tool among options before them", () => {
    const line = read("--registry", "http://a:1", "this", "--token=t", "exec");
    expect(line).toMatchObject({ device: "this", tool: "exec", flags: { registry: "http://a:1", token: "t" } });
  });

  it("takes the words after -- for the tool's, also where no option stands before", () => {
    expect(read("this", "exec", "--", "uname", "-a").rest).toEqual(["--", "uname", "-a"]);
    expect(read("this", "--", "uname")).toMatchObject({ device: "this", tool: undefined });
  });

  it.each([
    [["--json"], { json: true }],
    [["--json", "--input", "{}"], { json: true, input: "{}" }],
    [["--input", "-"], { input: "-" }],
    [["--input=@file"], { input: "@file" }],
    [["--help"], { help: true }],
    [["--no-wait"], { wait: false }],
    [["--wait", "3d"], { wait: 3_600_000 }],
    [["--queue", "1h"], { queue: 3_600_000 }],
    [["--queue", "1500ms"], { queue: 1500 }],
    [["--queue", "7d"], { queue: 604_800_000 }],
  ])("reads %j", (more, flags) => {
    expect(read("this", "exec", ...more).flags).toEqual(flags);
  });

  it.each([
    [["--bogus", "this", "exec"], "--bogus stands before DEVICE TOOL"],
    [["-abc", "this", "exec"], "-abc stands before DEVICE TOOL"],
    [["this", "exec", "--wait", "soon"], '--wait: "soon" is no duration'],
    [["this", "exec", "--wait"], "argument missing"],
    [["this", "exec", "--queue", "0s"], "--queue"],
    [["this", "exec", "--queue", "8d"], "--queue"],
    [["this", "exec", "--on", "role=web"], /first word is TOOL/],
    [["--argv", "ls", "--on", "role=web", "exec"], /stands before TOOL/],
    [["--on", "a", "--device", "b", "exec"], /cannot be used with/],
    [["--device", "a,,b", "exec"], /A name is empty/],
    [["--on", "a", "--wave", "0", "exec"], /--wave/],
    [["--on", "a", "--canary", "many", "exec"], /--canary/],
    [["--on", "a", "--max-devices", "1001", "exec"], /--max-devices/],
  ])("refuses %j", (argv, message) => {
    expect(() => read(...argv)).toThrow(message);
  });
});

describe("a call to many devices", () => {
  it("is chosen by labels, and takes the first word for the tool", () => {
    const words = ["--on", "role=web", "--wave", "2", "exec", "--argv", "uptime", "--canary=1", "--max-devices", "9"];
    const line = read(...words);
    expect(line).toMatchObject({ device: undefined, tool: "exec", rest: ["--argv", "uptime"] });
    expect(line.flags).toEqual({ on: "role=web", wave: 2, canary: 1, maxDevices: 9 });
  });

  it("is chosen by names", () => {
    const line = read("--device", "web-1, web-2", "exec", "--", "ls");
    expect(line).toMatchObject({ tool: "exec", flags: { device: ["web-1", "web-2"] } });
  });
});
