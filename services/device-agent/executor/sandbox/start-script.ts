import { shellWord } from "../../../../lib/programs/shell-word.ts";

/** The descriptors of a waiting shell besides its standard ones: what the program reads comes by one, the status goes by the other. */
export const INPUT_FD = 3;
export const STATUS_FD = 4;

/** What a waiting shell is to become. */
export interface ProgramStart {
  /** An absolute path. */
  program: string;
  args: readonly string[];
  /** An absolute path, as it is inside. */
  cwd: string;
  /** The whole environment. Names are those of shell variables. */
  env: Readonly<Record<string, string>>;
  limits: Limits;
  /** What it reads: nothing, so that it finds the end at once; what was fed, as a file; or what is written while it runs. */
  input: "none" | "file" | "pipe";
}

/** Limits of each process (setrlimit(2)). */
export interface Limits {
  cpuSeconds: number;
  /** Address space, in bytes. */
  memoryBytes: number;
  /** Processes of the user. The kernel does not apply it to root. */
  processes: number;
  /** The largest file that may be written, in bytes. */
  fileBytes: number;
  openFiles: number;
}

/** What a shell says of a start: nothing where it never got to read the script, so that nothing ran. */
export type StartStatus = "" | "started" | { failed: "input" | "cwd" | "program" };

/** True for a name that a shell can export. */
export function isShellName(name: string): boolean {
  return /^[A-Za-z_]\w*$/.test(name);
}

/**
 * The script with which a waiting shell of POSIX becomes a program. The shell reads it from its standard input, all of it before
 * it does any of it, because it is one compound command. Every word is quoted, so that it comes through as it is,
 * whatever bytes but NUL it holds. The status is written to a descriptor that the program does not get: around the exec it
 * is closed, and the copy that the shell keeps to restore it has FD_CLOEXEC. Only where the exec failed is there a shell left
 * whose trap uses it. Pure.
 */
export function startScript({ program, args, cwd, env, limits, input }: ProgramStart): string {
  const { cpuSeconds, memoryBytes, processes, fileBytes, openFiles } = limits;
  const argv = [program, ...args].map(shellWord).join(" ");
  return [
    "{",
    `echo started >&${STATUS_FD}`,
    "REEVE_AT=input",
    `trap 'echo "$REEVE_AT" >&${STATUS_FD}' EXIT`,
    ...INPUTS[input],
    `exec ${INPUT_FD}<&-`,
    "REEVE_AT=cwd",
    // What cannot be set is lower already. Shells disagree on the letter of the number of processes.
    `{ ulimit -c 0; ulimit -t ${cpuSeconds}; ulimit -v ${Math.floor(memoryBytes / 1024)}`,
    `ulimit -f ${Math.floor(fileBytes / 512)}; ulimit -n ${openFiles}`,
    `ulimit -u ${processes} || ulimit -p ${processes}; } 2>/dev/null`,
    `cd ${shellWord(cwd)} 2>/dev/null || exit 1`,
    "REEVE_AT=program",
    "unset PWD OLDPWD",
    ...Object.entries(env).map(([name, value]) => `export ${name}=${shellWord(value)}`),
    `[ -x ${shellWord(program)} ] && [ ! -d ${shellWord(program)} ] || exit 127`,
    `{ exec ${argv}; } ${STATUS_FD}>&-`,
    "}",
    "",
  ].join("\n");
}

/** A file without a name, as a shell makes for a here-document: a program can open it by name (/dev/stdin). */
const KEEP_INPUT = [
  `/bin/cat <&${INPUT_FD} >/dev/shm/input || exit 1`,
  "exec </dev/shm/input || exit 1",
  "/bin/rm -f /dev/shm/input",
];

const INPUTS: Readonly<Record<ProgramStart["input"], readonly string[]>> = {
  none: ["exec </dev/null"],
  file: KEEP_INPUT,
  pipe: [`exec <&${INPUT_FD}`],
};

/** Reads what the script wrote. */
export function statusOf(text: string): StartStatus {
  const [first, second] = text.split("\n");
  if (first !== "started") return "";
  if (second === "input" || second === "cwd" || second === "program") return { failed: second };
  return "started";
}
