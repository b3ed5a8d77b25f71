import { closeSync, readdirSync, readFileSync } from "node:fs";

/** O_CLOEXEC of Linux (open(2)), the same on x64 and arm64. Everything that Node itself opens has it. */
const O_CLOEXEC = 0o2000000;

/**
 * Closes the descriptors above 2 that this process got from its parent, so that no program that it starts gets them: what
 * was inherited once is inherited by every child. Left open are the channel to a parent that is Node, and what the
 * command line or the environment names as /dev/fd/N. To be called once, at the start of a process that runs programs.
 * Does nothing where there is no /proc, as on macOS. Returns what was closed.
 */
export function closeInheritedDescriptors(env: Readonly<Record<string, string | undefined>>): number[] {
  const named = [...process.argv, ...Object.values(env)].join("\n");
  const channel = (process.channel as { fd?: number } | null | undefined)?.fd;
  return descriptors().filter((fd) => {
    if (fd <= 2 || fd === channel || new RegExp(`/fd/${fd}\\b`).test(named) || !isInherited(fd)) return false;
    closeSync(fd);
    return true;
  });
}

function descriptors(): number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number);
  } catch {
    return [];
  }
}

/** True for a descriptor that is open and survives the start of a program. */
function isInherited(fd: number): boolean {
  try {
    const flags = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & O_CLOEXEC) === 0;
  } catch {
    // The descriptor of the listing itself is gone by now.
    return false;
  }
}
