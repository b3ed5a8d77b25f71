import { describe, expect, it } from "vitest";
import { callOptions, readCallWords } from "../call/call-words.ts";
import { queueSeconds } from "../queue/queue-option.ts";
import { readFanOutOptions } from "./words.ts";

const read = (...argv: string[]) => readCallWords(argv, callOptions);

describe("a call to many devices", () => {
  it("is told by --on, and takes the first word for the tool", () => {
    const words = read(
      "--on",
      "role=web",
      "--wave",
      "2",
      "exec",
      "--argv",
      "uptime",
      "--canary=1",
      "--max-devices",
      "9",
    );
    expect(words).toMatchObject({ device: undefined, tool: "exec" });
    expect(words.toolWords).toEqual(["--argv", "uptime"]);
    expect(readFanOutOptions(words.extra)).toEqual({
      selector: "role=web",
      devices: [],
      waveSize: 2,
      canary: 1,
      maxDevices: 9,
      stopAfterFailures: 0,
      fanOutId: undefined,
    });
  });

  it("is told by --devices, which names them", () => {
    const words = read("--devices", "web-1, web-2", "exec", "--", "ls");
    expect(words).toMatchObject({ tool: "exec" });
    expect(readFanOutOptions(words.extra).devices).toEqual(["web-1", "web-2"]);
  });

  it.each([
    [["this", "exec", "--on", "role=web"], /stand before TOOL/],
    [["--argv", "ls", "--on", "role=web", "exec"], /stands before DEVICE TOOL/],
  ])("refuses %j", (argv, message) => {
    expect(() => read(...argv)).toThrow(message);
  });

  it.each([
    [["--on", "a", "--devices", "b", "exec"], /exclude each other/],
    [["--devices", "a,,b", "exec"], /a name is empty/],
    [["--on", "a", "--wave", "0", "exec"], /--wave/],
    [["--on", "a", "--canary", "many", "exec"], /--canary/],
    [["--on", "a", "--max-devices", "1001", "exec"], /--max-devices/],
  ])("refuses %j", (argv, message) => {
    expect(() => readFanOutOptions(read(...argv).extra)).toThrow(message);
  });
});

describe("--queue", () => {
  it.each([
    [undefined, 0],
    ["1h", 3600],
    ["1500ms", 2],
    ["7d", 604_800],
  ])("%s is %i seconds", (text, seconds) => {
    expect(queueSeconds(text)).toBe(seconds);
  });

  it.each(["0s", "8d", "soon"])("refuses %s", (text) => {
    expect(() => queueSeconds(text)).toThrow(/--queue/);
  });
});
