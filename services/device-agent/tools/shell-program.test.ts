import { expect, it } from "vitest";
import { shellProgram } from "./shell-program.ts";

it("is bash, for which the text is never an option", () => {
  expect(shellProgram("-c ls", "linux")).toEqual(["bash", "--noprofile", "--norc", "-c", "--", "-c ls"]);
});

it("is PowerShell on Windows, which gets the text whole", () => {
  const text = "Write-Output \"é $env:USERNAME\" # 'quotes'";
  const [program, ...args] = shellProgram(text, "win32");
  expect([program, ...args.slice(0, 4)]).toEqual([
    "pwsh",
    "-NoLogo",
    "-NoProfile",
    "-NonInteractive",
    "-EncodedCommand",
  ]);
  expect(Buffer.from(args[4] ?? "", "base64").toString("utf16le")).toBe(text);
  expect(args[4]).toMatch(/^[A-Za-z0-9+/=]+$/);
});
