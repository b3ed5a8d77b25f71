import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { signManifest } from "../../../lib/owner-manifest/envelope.ts";
import { createKeyFile } from "../../../lib/sign/key-file.ts";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import { openOwnerManifest } from "./owner.ts";
import { loadTrust } from "./owner-trust.ts";

const AGENT = fileURLToPath(new URL("../testing/editions-agent.ts", import.meta.url));
const KILLS = 10;

const key = generateSigningKey();
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-editions-"));
  await createKeyFile(join(folder, "owner.pem"), key);
});
afterEach(() => rm(folder, { recursive: true }));

/** Runs the agent from a version on until it is killed, and resolves with the last version that it said it had accepted. */
async function killedAfter(first: number, ms: number): Promise<number> {
  const child = spawn(process.execPath, [AGENT, folder, join(folder, "owner.pem"), String(first)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (bytes: Buffer) => {
    said += bytes.toString();
  });
  await once(child.stdout, "data");
  await sleep(ms);
  child.kill("SIGKILL");
  await once(child, "close");
  return Number(said.trimEnd().split("\n").at(-1));
}

test("a device that is killed at any time keeps the highest version that it has accepted", {
  timeout: 120_000,
}, async () => {
  const trustFile = join(folder, "owner-trust.json");
  let version = 0;
  for (let kill = 0; kill < KILLS; kill++) {
    const last = await killedAfter(version + 1, Math.random() * 50);
    const kept = Number((await loadTrust(trustFile))?.version);
    expect(kept).toBeGreaterThanOrEqual(last);
    expect(last).toBeGreaterThan(version);
    version = kept;
  }
  const file = join(folder, "older.json");
  const text = `version: ${version - 1}\nexpire_time: 2100-01-01\ndevices: [test]\nmode: all\n`;
  await writeFile(file, signManifest(key, text));
  const options = { file, keys: [], trustFile, device: "test", nowMs: Date.now() };
  await expect(openOwnerManifest(options)).rejects.toThrow(`is older than ${version}`);
});
