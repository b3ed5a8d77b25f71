import { spawn } from "node:child_process";

/** What every server's exec tool does: runs /bin/true and gathers what it prints. */
export function spawnTrue(): Promise<{ stdout: string; exitCode: number }> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/true", [], { stdio: ["ignore", "pipe", "pipe"] });
    const chunks: Buffer[] = [];
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
    child.on("error", reject);
    child.on("close", (code) => resolve({ stdout: Buffer.concat(chunks).toString(), exitCode: code ?? -1 }));
  });
}
