import { programFailed, runProgram } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import type { ProcessSource, RunningProcess } from "./running-process.ts";

/** What ps prints, in an order in which only the last column may hold blanks but for the five of lstart. */
const COLUMNS = ["pid", "ppid", "uid", "state", "rss", "time", "lstart", "args"].flatMap((name) => ["-o", `${name}=`]);

/** More than any machine's processes print: a list that is cut would be wrong. */
const PS_OUTPUT = 16 * 1024 * 1024;

/** Processes from ps, for systems without /proc. */
export const psSource: ProcessSource = {
  list: (context) => ps(context, ["-ax"]),
  get: async (context, pid) => (await ps(context, ["-p", String(pid)]))[0],
};

async function ps(context: ToolContext, which: readonly string[]): Promise<RunningProcess[]> {
  const run = await runProgram(context, {
    argv: ["ps", ...which, ...COLUMNS, "-ww"],
    cwd: "/",
    toolEnv: { LC_ALL: "C" },
    maxOutputBytes: PS_OUTPUT,
    live: false,
  });
  // ps ends with 1 where no process has the id.
  if (run.exitCode > 1 || run.stderr !== "") throw programFailed("ps", run);
  return parsePs(run.stdout);
}

/** Reads what ps prints for COLUMNS in the C locale. Pure. */
export function parsePs(output: string): RunningProcess[] {
  return output.split("\n").flatMap((line): RunningProcess[] => {
    const [pid, ppid, uid, state = "", rss, time = "", day, month, date, clock, year, ...words] = line
      .trim()
      .split(/\s+/);
    if (words.length === 0) return [];
    const command = words.join(" ");
    const name = (words[0] ?? "").replace(/^.*\//, "");
    const startMs = Date.parse(`${day} ${month} ${date} ${year} ${clock}`);
    return [
      {
        pid: Number(pid),
        ppid: Number(ppid),
        uid: Number(uid),
        name,
        command,
        state,
        memoryBytes: Number(rss) * 1024,
        cpuMs: timeMs(time),
        startMs,
      },
    ];
  });
}

/** "[DD-]HH:MM:SS" or "MM:SS.hh", in milliseconds. */
function timeMs(time: string): number {
  const [days, clock] = time.includes("-") ? (time.split("-") as [string, string]) : ["0", time];
  const seconds = clock.split(":").reduce((sum, part) => sum * 60 + Number(part), 0);
  return Math.round((Number(days) * 86_400 + seconds) * 1000);
}
