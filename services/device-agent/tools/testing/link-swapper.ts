import { spawn } from "node:child_process";

/**
 * Swaps, in `root`: the folder `swap` and the file `leaf` for links to `outside` and to `outside/file`, and back. It writes
 * through no link itself.
 */
const CODE = `
  const { renameSync, symlinkSync, unlinkSync, mkdirSync, rmSync, writeFileSync } = require("node:fs");
  const [root, outside] = process.argv.slice(1);
  const quiet = (f) => { try { f(); } catch {} };
  const put = (path) => writeFileSync(path, "inside", { flag: "wx" });
  mkdirSync(root + "/swap"); put(root + "/swap/file"); put(root + "/leaf");
  console.log("ready");
  for (;;) {
    quiet(() => rmSync(root + "/kept", { recursive: true, force: true }));
    quiet(() => renameSync(root + "/swap", root + "/kept"));
    quiet(() => symlinkSync(outside, root + "/swap"));
    quiet(() => unlinkSync(root + "/leaf"));
    quiet(() => symlinkSync(outside + "/file", root + "/leaf"));
    quiet(() => unlinkSync(root + "/swap"));
    quiet(() => renameSync(root + "/kept", root + "/swap"));
    quiet(() => mkdirSync(root + "/swap"));
    quiet(() => put(root + "/swap/file"));
    quiet(() => unlinkSync(root + "/leaf"));
    quiet(() => put(root + "/leaf"));
  }`;

/** Starts a process that swaps names for links that lead outside, as fast as it can. Disposing kills it. */
export async function startLinkSwapper(root: string, outside: string): Promise<AsyncDisposable> {
  const attacker = spawn(process.execPath, ["-e", CODE, root, outside], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise((resolve) => attacker.stdout.once("data", resolve));
  return {
    async [Symbol.asyncDispose]() {
      const gone = new Promise((resolve) => attacker.once("exit", resolve));
      attacker.kill("SIGKILL");
      await gone;
    },
  };
}
