/** How a program that runs the command in its arguments is written. */
export interface Wrapper {
  /** Short options that take a value. */
  short?: string;
  /** Long options that take the next word as their value. */
  long?: readonly string[];
  /** How many operands stand before the command. */
  operands?: number;
  /** True where one word is handed to a shell. */
  shell?: boolean;
  /** The command begins behind this word, wherever it stands. */
  behind?: string;
}

function long(names: string): readonly string[] {
  return names.split(" ").map((name) => `--${name}`);
}

/** By program. A map: on a plain object every program named as a member of Object would be found. */
export const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map<string, Wrapper>([
  ["sudo", { short: "ughpCrtTUDRa", long: long("user group host prompt chdir chroot close-from role type") }],
  ["doas", { short: "uC" }],
  ["pkexec", { long: long("user") }],
  ["env", { short: "uC", long: long("unset chdir") }],
  ["nice", { short: "n", long: long("adjustment") }],
  ["ionice", { short: "cn", long: long("class classdata") }],
  ["chrt", { short: "TPD", operands: 1 }],
  ["taskset", { operands: 1 }],
  ["numactl", { short: "iNmCpP" }],
  ["timeout", { short: "sk", long: long("signal kill-after"), operands: 1 }],
  ["time", { short: "fo", long: long("format output") }],
  ["stdbuf", { short: "ioe", long: long("input output error") }],
  ["flock", { short: "wEc", long: long("timeout conflict-exit-code"), operands: 1, shell: true }],
  ["strace", { short: "eopsuaESPXI" }],
  ["ltrace", { short: "eopsuanl" }],
  ["perf", { short: "eoprt", operands: 1 }],
  ["valgrind", {}],
  ["gdb", { behind: "--args" }],
  ["watch", { short: "nqd", long: long("interval"), shell: true }],
  ["entr", { shell: true }],
  ["parallel", { short: "jISNnLPa", long: long("jobs colsep delay retries"), shell: true }],
  [
    "systemd-run",
    { short: "uptMH", long: long("unit property description slice uid gid setenv on-active on-calendar") },
  ],
  ["systemd-inhibit", { long: long("what who why mode") }],
  ["nsenter", { short: "tSG", long: long("target setuid setgid") }],
  ["unshare", { short: "SGRw", long: long("setuid setgid root wd map-user map-group") }],
  ["chroot", { long: long("userspec groups"), operands: 1 }],
  ["proot", { short: "rbwq" }],
  ["setpriv", { long: long("reuid regid groups inh-caps ambient-caps bounding-set") }],
  ["prlimit", {}],
  ["cgexec", { short: "g" }],
  ["capsh", { behind: "--" }],
  ["firejail", {}],
  ["fakeroot", {}],
  ["setsid", {}],
  ["nohup", {}],
  ["setarch", { operands: 1 }],
  ["linux64", {}],
  ["linux32", {}],
  ["busybox", {}],
  ["toybox", {}],
  ["caffeinate", { short: "tw" }],
  ["xvfb-run", { short: "nsef" }],
  ["dbus-run-session", {}],
  ["chronic", {}],
  ["unbuffer", {}],
  ["eatmydata", {}],
  ["sshpass", { short: "pfdP" }],
  ["rlwrap", {}],
  ["ld-linux-x86-64.so.2", { long: long("library-path preload argv0") }],
  ["ld-linux.so.2", { long: long("library-path preload argv0") }],
  ["ld-linux-aarch64.so.1", { long: long("library-path preload argv0") }],
  ["machinectl", { short: "M", operands: 2 }],
  ["tmux", { short: "cefLnstSxy", operands: 1, shell: true }],
  ["screen", { short: "cehpsStT", shell: true }],
  ["start-stop-daemon", { behind: "--" }],
  ["daemonize", { short: "acEeolpu" }],
]);

/** The words behind the options and operands of a wrapper. */
export function afterOptions(args: readonly string[], wrapper: Wrapper): readonly string[] {
  if (wrapper.behind !== undefined) {
    const at = args.indexOf(wrapper.behind);
    return at < 0 ? [] : args.slice(at + 1);
  }
  let at = 0;
  for (; at < args.length; at++) {
    const word = args[at] ?? "";
    if (word === "--") {
      at += 1;
      break;
    }
    if (takesNext(word, wrapper)) at += 1;
    else if (!/^-./.test(word)) break;
  }
  const rest = args.slice(at + (wrapper.operands ?? 0));
  // Behind its operands a program may take options again: `tmux new-session -d`, `ssh host -- ls`.
  const again = (wrapper.operands ?? 0) > 0 && (rest[0] ?? "").startsWith("-");
  return again ? afterOptions(rest, { ...wrapper, operands: 0 }) : rest;
}

/** True for an option whose value is the next word: "-u", "-nu", "--user". */
function takesNext(word: string, { short = "", long = [] }: Wrapper): boolean {
  if (word.startsWith("--")) return long.includes(word);
  if (!/^-[A-Za-z]/.test(word)) return false;
  const first = Array.from(word.slice(1)).findIndex((letter) => short.includes(letter));
  return first === word.length - 2;
}

/** The values of an option in all its spellings: "-c x", "-cx", "--command x", "--command=x". */
export function valuesOf(args: readonly string[], letters: string, ...names: readonly string[]): string[] {
  return args.flatMap((word, at) => {
    const next = args[at + 1] ?? "";
    const name = names.find((each) => word === `--${each}` || word.startsWith(`--${each}=`));
    if (name !== undefined) return [word.includes("=") ? word.slice(word.indexOf("=") + 1) : next];
    if (letters === "" || !/^-[A-Za-z]/.test(word)) return [];
    const found = Array.from(word).findIndex((letter, index) => index > 0 && letters.includes(letter));
    if (found < 0) return [];
    return [found === word.length - 1 ? next : word.slice(found + 1)];
  });
}
