import { randomUUID } from "node:crypto";
import { MARKER_NAME } from "../process-tree.ts";
import type { Sandbox } from "./open-sandbox.ts";

/** How long the trial may take, in milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * What must fail or be so inside, each with its name, for a shell of POSIX. What a shell cannot try, such as a socket of the
 * local machine, the process's own status shows: the filter is on, nothing can be gained, and nothing is held.
 */
const CANARIES = `
bad() { echo "$1"; }
for folder in /usr ""; do
  (: > "$folder/reeve-canary") 2>/dev/null && rm -f "$folder/reeve-canary" && bad "a program can write $folder/"
done
(: < /etc/shadow) 2>/dev/null && bad "a program can read /etc/shadow"
for folder in "$@"; do
  for name in "$folder"/* "$folder"/.[!.]*; do [ -e "$name" ] && bad "a program sees what is in $folder" && break; done
done
others=0
for process in /proc/[0-9]*; do others=$((others + 1)); done
[ "$others" -gt 3 ] && bad "a program sees $others processes"
links=0
while read -r name _; do case $name in lo:|Inter-*|face*) ;; *) links=$((links + 1)) ;; esac; done < /proc/net/dev
[ "$links" -eq 0 ] || bad "a program has a network"
while read -r name value _; do
  case $name in
    CapEff:|CapPrm:|CapBnd:) [ "$value" = 0000000000000000 ] || bad "a program has capabilities: $name $value" ;;
    NoNewPrivs:) [ "$value" = 1 ] || bad "a program can gain privileges" ;;
    Seccomp:) [ "$value" = 2 ] || bad "the system call filter is not on" ;;
  esac
done < /proc/self/status
echo tried
`;

/** Runs what must fail in a sandbox. Undefined where all of it did; else what did not, in words for the operator. */
export async function probeSandbox(sandbox: Sandbox, hidden: readonly string[]): Promise<string | undefined> {
  const marker = randomUUID();
  try {
    const { stdout, stderr, ...end } = await sandbox.run({
      spec: {
        argv: ["sh", "-c", CANARIES, "sh", ...hidden],
        cwd: "/",
        timeoutMs: TIMEOUT_MS,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      },
      isolation: "read_only",
      program: "/bin/sh",
      env: { PATH: "/usr/bin:/bin", [MARKER_NAME]: marker },
      marker,
      graceMs: 0,
    });
    const said = stdout.trim().split("\n");
    if (end.kind === "exited" && said.join() === "tried") return undefined;
    const problems = said.filter((line) => line !== "tried" && line !== "");
    return `bubblewrap does not hold here: ${problems.join("; ") || stderr.trim() || end.kind}`;
  } catch (error: unknown) {
    return `bubblewrap does not work here: ${error instanceof Error ? error.message : String(error)}`;
  }
}
