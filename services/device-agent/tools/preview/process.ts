import { readFileSync } from "node:fs";
import type { Process } from "../../../../gen/ts/reeve/tools/v1/process_pb.ts";
import { isZombie, processSource } from "../process/process-source.ts";
import { redactCommand } from "../process/redact-command.ts";
import type { ProcessSource } from "../process/running-process.ts";
import type { ToolPreviews } from "../tool.ts";

/** What a process id stands for: its command line, its owner, and when it started, which with the id names it for ever. */
export function createProcessPreviews(source: ProcessSource = processSource): ToolPreviews<typeof Process> {
  return {
    async kill({ pid }, context) {
      const found = await source.get(context, pid);
      if (found === undefined || isZombie(found)) return [{ name: "process", value: "there is none with this id" }];
      const { uid, command, name, startMs } = found;
      return [
        { name: "command", value: redactCommand(command) || `[${name}]` },
        { name: "owner", value: ownerOf(uid) },
        // ps counts in seconds, and rounds.
        { name: "started", value: `${new Date(Math.round(startMs / 1000) * 1000).toISOString().slice(0, 19)}Z` },
      ];
    },
  };
}

/** A user's name and id, as /etc/passwd has it (passwd(5)). */
function ownerOf(uid: number): string {
  const line = passwd().find((one) => one.split(":")[2] === String(uid));
  return line === undefined ? `uid ${uid}` : `${line.split(":")[0]} (uid ${uid})`;
}

function passwd(): string[] {
  try {
    return readFileSync("/etc/passwd", "utf8").split("\n");
  } catch {
    return [];
  }
}
