import { describe, expect, it } from "vitest";
import { readCallWords } from "./call-words.ts";

describe("a call's command line", () => {
  it("leaves the tool's words to the tool, in order", () => {
    const words = readCallWords(["this", "exec", "--argv", "uname", "--wait", "5s", "--argv=-a", "--", "--json", "-h"]);
    expect(words).toMatchObject({ device: "this", tool: "exec", waitMs: 5000, output: "text", help: false });
    expect(words.toolWords).toEqual(["--argv", "uname", "--argv=-a", "--", "--json", "-h"]);
  });

  it("finds the device and the tool among options before them", () => {
    const words = readCallWords(["--registry", "http://a:1", "this", "--token=t", "exec"]);
    expect(words).toMatchObject({ device: "this", tool: "exec", target: { registry: "http://a:1", token: "t" } });
  });

  it.each([
    [["--json"], undefined, "json"],
    [["--json", "--argv", "ls"], undefined, "json"],
    [["--json", '{"a":1}'], '{"a":1}', "text"],
    [['--json={"a":1}'], '{"a":1}', "text"],
    [["--json", "-"], "-", "text"],
    [["--json", "@file"], "@file", "text"],
    [["--json", "{}", "-o", "json"], "{}", "json"],
    [["--json", "{}", "--output=json"], "{}", "json"],
    [["--json", "{}", "--json"], "{}", "json"],
    [["-o", "text"], undefined, "text"],
  ])("%j: input %j, output %s", (more, input, output) => {
    expect(readCallWords(["this", "exec", ...more])).toMatchObject({ input, output });
  });

  it("asks for help with --help and -h", () => {
    expect(readCallWords(["this", "exec", "--help"]).help).toBe(true);
    expect(readCallWords(["-h"]).help).toBe(true);
  });

  it("waits an hour at most", () => {
    expect(readCallWords(["a", "b", "--wait", "3d"]).waitMs).toBe(3_600_000);
  });

  it("reads the options of the one command that asks for them", () => {
    const words = readCallWords(["a", "b", "--as-role", "agent"], ["as-role", "as-id"]);
    expect(words.extra).toEqual(new Map([["as-role", "agent"]]));
  });

  it.each([
    [["--bogus", "this", "exec"], "--bogus stands before DEVICE TOOL"],
    [["-abc", "this", "exec"], "-abc stands before DEVICE TOOL"],
    [["this", "exec", "--wait", "soon"], '--wait: "soon" is no duration'],
    [["this", "exec", "--wait"], "--wait needs a value"],
    [["this", "exec", "--call-id", "a", "--call-id", "b"], "--call-id is given twice"],
    [["this", "exec", "--json", "{}", "--json", "{}"], "--json is given twice"],
    [["this", "exec", "--no-wait=1"], "--no-wait takes no value"],
    [["this", "exec", "-o", "xml"], '--output: "xml" is neither text nor json'],
  ])("refuses %j", (argv, message) => {
    expect(() => readCallWords(argv)).toThrow(message);
  });
});
