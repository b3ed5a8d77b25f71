import { readFile } from "node:fs/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, it } from "vitest";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { analyzeCall } from "../../../lib/command/call.ts";
import { loadCatalog, toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { factsOf } from "../facts/facts.ts";
import { DEFAULT_POLICY_FILE } from "../rules/default-policy.ts";
import { completeExample } from "../rules/example.ts";
import { loadPolicy } from "../rules/load-policy.ts";
import type { Policy } from "../rules/policy.ts";
import { evaluate } from "./evaluate.ts";

let policy: Policy;

beforeAll(async () => {
  const result = loadPolicy(await readFile(DEFAULT_POLICY_FILE, "utf8"), toolByName);
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  policy = result.policy;
});

function effectFor(
  role: string,
  tool: string,
  args: JsonObject,
  sandbox: SandboxLevel = SandboxLevel.READ_ONLY,
): string {
  const result = completeExample({ tool, args, principal: { roles: [role] } }, toolByName);
  if (!result.ok || !result.request.tool) throw new Error("no example");
  const { request } = result;
  const command = analyzeCall(toolByName(tool)?.inputSchema ?? {}, args, { roots: request.device?.roots ?? [] });
  return evaluate(policy, { tool: result.request.tool, device: { sandbox }, command }, factsOf(request, args, command))
    .effect;
}

const exec = (...argv: string[]): [string, JsonObject] => ["exec", { argv }];
const write = (path: string, mode?: string): [string, JsonObject] => ["fs.write", { path, ...(mode && { mode }) }];
const CREATE = "WRITE_MODE_CREATE";

describe("the shipped policy", () => {
  it.each([
    [["device.ping", {}], "allow", "allow"],
    [["fs.read", { path: "/etc/hosts" }], "allow", "allow"],
    [["fs.read", { path: "/home/me/.ssh/id_rsa" }], "allow", "deny"],
    [["fs.list", { path: "/" }], "allow", "allow"],
    [["docker.logs", { container: "web" }], "allow", "allow"],
    [exec("uname", "-a"), "allow", "allow"],
    [exec("df", "-h"), "allow", "allow"],
    [exec("date", "+%s"), "allow", "allow"],
    [exec("date", "--set", "now"), "allow", "hold"],
    [exec("hostname"), "allow", "allow"],
    [exec("cat", "/etc/hosts"), "allow", "hold"],
    [exec("/usr/bin/df"), "allow", "hold"],
    [exec("rm", "-rf", "/"), "block", "block"],
    [["shell.eval", { command: "ls" }], "hold", "allow"],
    [["shell.eval", { command: "cat src/a.ts | head -n 5" }], "hold", "allow"],
    [["shell.eval", { command: "git log -3 && git diff" }], "hold", "allow"],
    [["shell.eval", { command: "ls /root; cat /etc/shadow" }], "hold", "hold"],
    [["shell.eval", { command: "wc -c ../secret" }], "hold", "hold"],
    [["shell.eval", { command: "git commit -m x" }], "hold", "hold"],
    [["shell.eval", { command: "ls > a" }], "hold", "hold"],
    [["shell.eval", { command: "docker ps" }], "hold", "hold"],
    [["shell.eval", { command: "rm -rf /" }], "block", "block"],
    [write("/srv/a.txt"), "allow", "hold"],
    [write("/srv/a.txt", CREATE), "allow", "allow"],
    [write("/srv/GNUmakefile", CREATE), "allow", "hold"],
    [write("/srv/node_modules/x/index.js", CREATE), "allow", "hold"],
    [write("/srv/repo/HEAD", CREATE), "allow", "hold"],
    [write("/home/me/bin/nproc", CREATE), "allow", "deny"],
    [["fs.write", { path: "/srv/a.txt", mode: CREATE, permissions: 0o755 }], "allow", "hold"],
    [["fs.read", { path: "/srv/.bash_history" }], "allow", "deny"],
    [["fs.list", { path: "/srv/.config" }], "allow", "deny"],
    [exec("ls", "/srv"), "allow", "allow"],
    [exec("ls", "/root"), "allow", "hold"],
    [exec("wc", "-c", "/etc/shadow"), "allow", "hold"],
    [exec("ls", "-la", "/srv/.ssh"), "allow", "hold"],
    [write("/home/me/.bashrc", CREATE), "allow", "hold"],
    [["git.commit", { path: "/srv/a", message: "m" }], "allow", "allow"],
    [["git.push", { path: "/srv/a" }], "allow", "hold"],
    [["git.clone", { url: "https://example.com/a", path: "/srv/a" }], "allow", "hold"],
    [["pkg.install", { packages: ["htop"] }], "hold", "hold"],
    [["pkg.search", { query: "htop" }], "allow", "allow"],
    [["fs.delete", { path: "/srv/a" }], "hold", "hold"],
    [["fs.move", { path: "/srv/a", to: "/srv/b" }], "allow", "hold"],
    [["fs.move", { path: "/srv/a", to: "/srv/bin/a" }], "allow", "deny"],
    [["fs.edit", { path: "/srv/a", oldText: "x", newText: "y" }], "allow", "hold"],
    [["fs.edit", { path: "/home/me/bin/a", oldText: "x", newText: "y" }], "allow", "deny"],
    [["fs.undo", { call: "call-1" }], "allow", "hold"],
    [["fs.search", { path: "/srv", pattern: "x" }], "allow", "allow"],
    [["fs.search", { path: "/srv", pattern: "x", hidden: true }], "allow", "deny"],
    [["fs.search", { path: "/srv/app/.env", pattern: "x" }], "allow", "deny"],
    [["proc.kill", { pid: 12 }], "hold", "hold"],
    [["docker.exec", { container: "web", argv: ["ls"] }], "hold", "hold"],
  ] as [[string, JsonObject], string, string][])(
    "decides %j: operator %s, agent %s",
    ([tool, args], operator, agent) => {
      expect([effectFor("operator", tool, args), effectFor("agent", tool, args)]).toEqual([operator, agent]);
    },
  );

  it("holds programs that look at files where the device has no sandbox, and nothing more than these", () => {
    const without = (argv: string[]) => effectFor("agent", "exec", { argv }, SandboxLevel.NONE);
    expect(effectFor("agent", "shell.eval", { command: "ls" }, SandboxLevel.NONE)).toBe("hold");
    for (const argv of [
      ["ls", "/srv"],
      ["git", "status"],
      ["wc", "-l", "/srv/a"],
      ["du", "-sh", "/srv"],
    ])
      expect(without(argv)).toBe("hold");
    for (const argv of [["uname"], ["df"], ["date"], ["echo", "a"]]) expect(without(argv)).toBe("allow");
    expect(effectFor("operator", "exec", { argv: ["ls", "/srv"] }, SandboxLevel.NONE)).toBe("allow");
  });

  it("lets auditors and services call nothing", () => {
    for (const { name } of loadCatalog().tools) {
      const args: JsonObject = name === "exec" ? { argv: ["df"] } : { path: "/a" };
      const known = Object.keys(toolByName(name)?.inputSchema.properties ?? {});
      const fitting = Object.fromEntries(Object.entries(args).filter(([key]) => known.includes(key)));
      for (const role of ["auditor", "service"]) expect(effectFor(role, name, fitting)).toMatch(/^(deny|block)$/);
    }
  });
});
