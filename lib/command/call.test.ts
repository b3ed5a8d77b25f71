import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { toolByName } from "../toolschema/catalog-file.ts";
import { analyzeCall, type DeviceFolders, planDigest } from "./call.ts";

const ROOTS = { roots: ["/srv", "/home/me"] };

function analysis(tool: string, args: JsonObject, device: DeviceFolders = ROOTS) {
  return analyzeCall(toolByName(tool)?.inputSchema ?? expect.fail(), args, device);
}

describe("an argument list", () => {
  it.each([
    [["ls"], ""],
    [["ls", "-la", "/srv/app"], ""],
    [["ls", "app", "-l"], "/srv"],
    [["ls", "--", "-odd"], "/srv"],
    [["wc", "-l", "a.txt"], ""],
    [["stat", "/home/me/.gitignore"], ""],
    [["git", "status"], "/srv/app"],
  ])("%j in %j may run unasked", (argv, cwd) => {
    expect(analysis("exec", { argv, cwd })).toMatchObject({ verdict: "allow", plan: { v: 1 } });
  });

  it.each([
    [["ls", "/root"], ""],
    [["ls"], "/root"],
    [["git", "status"], "/root"],
    [["ls", "/srvx"], ""],
    [["ls", "/srv/../root"], ""],
    [["ls", ".."], "/srv"],
    [["ls", "a/../../root"], "/srv/b"],
    [["ls", "/home/me/.ssh"], ""],
    [["ls", ".config"], "/home/me"],
    [["ls"], "/home/me/.config"],
    [["grep", "-r", "x"], ""],
    [["wc", "-c", "/srv/terraform.tfstate"], ""],
    [["ls", "--", "/root"], ""],
    [["du", "-X/etc/shadow", "/srv"], ""],
    [["realpath", "--relative-base=/root", "a"], "/srv"],
    [["ls", "srv"], "relative"],
    [[], ""],
  ])("%j in %j asks", (argv, cwd) => {
    const found = analysis("exec", { argv, cwd });
    expect(found.verdict).toBe("ask");
    expect(found.plan).toBeUndefined();
  });

  it("asks about a list that is very long", () => {
    const argv = ["cat", ...Array.from({ length: 200 }, (_, at) => `${"x".repeat(400)}${at}`)];
    expect(analysis("exec", { argv, cwd: "/srv" }).reasons[0]?.rule).toBe("command/too-long");
    expect(analysis("exec", { argv: argv.slice(0, 9), cwd: "/srv" }).verdict).toBe("allow");
  });

  it("asks where nothing is granted, and where it sets a variable", () => {
    expect(analysis("exec", { argv: ["ls"] }, { roots: [] }).verdict).toBe("ask");
    const withVariable = analysis("exec", { argv: ["ls"], env: { GCONV_PATH: "/tmp" } });
    expect(withVariable.reasons[0]?.rule).toBe("command/environment");
    expect(analysis("exec", { argv: ["ls"], env: {} }).verdict).toBe("allow");
  });

  it("starts in the folder where the device runs what names none", () => {
    const argv = ["grep", "-r", "x"];
    expect(analysis("exec", { argv }, { ...ROOTS, workDir: "/srv" }).verdict).toBe("allow");
    expect(analysis("exec", { argv }, { ...ROOTS, workDir: "/home/me" }).verdict).toBe("ask");
    const many = Array.from({ length: 20 }, (_, at) => `/srv/${at}`);
    expect(analysis("exec", { argv: ["ls"] }, { roots: many }).verdict).toBe("ask");
    expect(analysis("exec", { argv: ["ls"], cwd: "/srv/7" }, { roots: many }).verdict).toBe("allow");
  });

  it("asks on Windows, and blocks there what it blocks everywhere", () => {
    const windows = { ...ROOTS, platform: "win32/x64" };
    expect(analysis("exec", { argv: ["ls"] }, windows).reasons[0]?.rule).toBe("command/windows");
    expect(analysis("shell.eval", { command: "ls" }, windows)).toMatchObject({ verdict: "ask" });
    expect(analysis("shell.eval", { command: "rm -rf /" }, windows).verdict).toBe("block");
  });

  it("comes to the same plan wherever it starts", () => {
    const plans = ["/srv", "/home/me", undefined].map((workDir) =>
      analysis("shell.eval", { command: "ls app | wc -l" }, { ...ROOTS, workDir }),
    );
    expect(new Set(plans.map(({ plan }) => planDigest(plan ?? expect.fail()))).size).toBe(1);
  });
});

describe("the commands of a call", () => {
  it("have no verdict where no field is marked", () => {
    expect(analysis("fs.write", { path: "/srv/a", text: "rm -rf /" })).toEqual({ verdict: "none", reasons: [] });
    expect(analysis("shell.eval", {}).verdict).toBe("none");
  });

  it("are blocked or refused as they are everywhere", () => {
    expect(analysis("shell.eval", { command: "ls; rm -rf /" })).toMatchObject({
      verdict: "block",
      reasons: [{ rule: "blocklist/delete-system" }],
    });
    expect(analysis("docker.exec", { container: "web", argv: ["rm", "-rf", "etc"], cwd: "/" }).verdict).toBe("block");
    expect(analysis("shell.eval", { command: `${"$(".repeat(40)}id${")".repeat(40)}` }).verdict).toBe("reject");
    // The call does not say that it runs there.
    expect(analysis("exec", { argv: ["rm", "-rf", "etc"] }, { roots: ["/"] }).verdict).toBe("ask");
  });

  it("have no plan where they run in a container", () => {
    expect(analysis("docker.exec", { container: "web", argv: ["ls"] })).toMatchObject({
      verdict: "ask",
      reasons: [{ rule: "command/elsewhere" }],
    });
  });

  it("have no plan where there are several, and the strictest of them counts", () => {
    const schema = {
      type: "object",
      properties: {
        steps: {
          type: "array",
          items: {
            type: "object",
            properties: { argv: { type: "array", items: { type: "string" }, "x-reeve-command": "argv" } },
          },
        },
      },
    };
    const of = (...steps: string[][]) => analyzeCall(schema, { steps: steps.map((argv) => ({ argv })) }, ROOTS);
    expect(of(["ls"]).verdict).toBe("allow");
    expect(of(["ls"], ["ls"])).toMatchObject({ verdict: "ask", reasons: [{ rule: "command/several" }] });
    expect(of(["ls"], ["rm", "-rf", "/"], ["make"]).verdict).toBe("block");
  });
});
