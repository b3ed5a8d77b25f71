import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { toolByName } from "../toolschema/catalog-file.ts";
import { blockReason as blockReasonBySchema } from "./tools.ts";

function blockReason(tool: string, args: JsonObject) {
  return blockReasonBySchema(toolByName(tool)?.inputSchema ?? expect.fail(), args);
}

describe("exec", () => {
  it.each([
    [["rm", "-rf", "/"]],
    [["/usr/bin/sudo", "rm", "-rf", "/etc"]],
    [["bash", "-c", "cd / && rm -rf *"]],
    [["env", "A=b", "reboot"]],
    [["env", "-S", "rm -rf /"]],
    [["dd", "if=x", "of=/dev/sda"]],
    [["xargs", "-n", "1", "kill", "-9", "1"]],
    [["find", "/x", "-exec", "rm", "-rf", "/", ";"]],
  ])("refuses %j", (argv) => {
    expect(blockReason("exec", { argv })).toBeDefined();
  });

  it.each([
    [["grep", "rm -rf /", "notes.txt"]],
    [["echo", "shutdown", "at", "noon"]],
    [["sh", "-c", "echo 'rm -rf /'"]],
    [["rm", "-rf", "/tmp/x"]],
    [["printf", "%s", "> /dev/sda"]],
    [["git", "commit", "-m", "; rm -rf /"]],
    [[]],
  ])("lets %j pass", (argv) => {
    expect(blockReason("exec", { argv })).toBeUndefined();
  });

  it("is looked at in a container too", () => {
    expect(blockReason("docker.exec", { container: "web", argv: ["rm", "-rf", "/"] })).toBeDefined();
    expect(blockReason("docker.exec", { container: "web", argv: ["rm", "-rf", "etc"], cwd: "/" })).toBeDefined();
    expect(blockReason("docker.exec", { container: "web", argv: ["rm", "-rf", "/tmp/x"] })).toBeUndefined();
  });

  it("looks at what a shell reads from its input", () => {
    expect(blockReason("exec", { argv: ["bash"], stdin: "echo hi\nrm -rf /\n" })).toBeDefined();
    expect(blockReason("exec", { argv: ["cat"], stdin: "rm -rf /\n" })).toBeUndefined();
  });

  it("knows the folder that a relative path starts from", () => {
    expect(blockReason("exec", { argv: ["rm", "-rf", "etc"], cwd: "/" })).toBeDefined();
    expect(blockReason("exec", { argv: ["rm", "-rf", "etc"], cwd: "/srv/app" })).toBeUndefined();
  });
});

it.each(["constructor", "toString", "valueOf", "__proto__", "hasOwnProperty"])(
  "looks a program named %s up like any other",
  (program) => {
    expect(blockReason("exec", { argv: [program, "x"] })).toBeUndefined();
    expect(blockReason("shell.eval", { command: `true; ${program} x | ${program}` })).toBeUndefined();
    expect(blockReason("shell.eval", { command: `${program} x; rm -rf /` })?.rule).toBe("blocklist/delete-system");
  },
);

it("has nothing against other tools and other input", () => {
  expect(blockReason("fs.write", { path: "/x", text: "rm -rf /" })).toBeUndefined();
  expect(blockReason("exec", { argv: "rm -rf /" })).toBeUndefined();
  expect(blockReason("shell.eval", {})).toBeUndefined();
});

it.each([
  "$(".repeat(5000),
  "(".repeat(8000),
  "`".repeat(8000),
  "sudo ".repeat(1600),
  "a;".repeat(4000),
  "'".repeat(8001),
  '"$('.repeat(2600),
])("comes to an end with %.8s repeated", (command) => {
  blockReason("shell.eval", { command });
});

it("refuses what is nested too deep to be looked at", () => {
  const command = `${"bash -c '".repeat(1)}${"$(".repeat(40)}rm -rf /${")".repeat(40)}'`;
  expect(blockReason("shell.eval", { command })?.rule).toBe("command/too-complex");
});
