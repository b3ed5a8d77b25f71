/** What /proc/PID/stat says (proc_pid_stat(5)), as far as it is used here. */
export interface ProcStat {
  pid: number;
  /** The short name, at most 15 characters. */
  name: string;
  /** One letter, such as "S" for sleeping or "Z" for a zombie. */
  state: string;
  ppid: number;
  /** The process group. */
  group: number;
  session: number;
  /** Processor time used in user mode and in the kernel, in clock ticks. */
  cpuTicks: number;
  /** When it started, in clock ticks since boot. With the pid it names one process for ever. */
  startTicks: number;
}

/**
 * Reads the text of /proc/PID/stat. The name stands in parentheses and may hold any character, so the fields are
 * counted from the last closing one. Undefined for text that is something else.
 */
export function parseProcStat(text: string): ProcStat | undefined {
  const open = text.indexOf("(");
  const close = text.lastIndexOf(")");
  if (open < 0 || close < open) return undefined;
  const fields = text.slice(close + 2).split(" ");
  const number = (index: number): number => Number(fields[index]);
  if (fields.length < 20) return undefined;
  return {
    pid: Number(text.slice(0, open)),
    name: text.slice(open + 1, close),
    state: fields[0] ?? "?",
    ppid: number(1),
    group: number(2),
    session: number(3),
    cpuTicks: number(11) + number(12),
    startTicks: number(19),
  };
}
