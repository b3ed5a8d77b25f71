/** How a program that runs another one is written. */
interface Wrapper {
  /** Options that take the next word as their value. */
  values?: string;
  /** How many operands stand before the command. */
  operands?: number;
}

/** Programs that run the command in their arguments. A map: on a plain object every program named as a member of Object would be found. */
const WRAPPERS: ReadonlyMap<string, Wrapper> = new Map(
  Object.entries<Wrapper>({
    sudo: { values: "-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot" },
    doas: { values: "-u -C" },
    env: { values: "-u --unset -C --chdir" },
    nice: { values: "-n --adjustment" },
    ionice: { values: "-c -n --class --classdata" },
    chrt: { operands: 1 },
    taskset: { operands: 1 },
    timeout: { values: "-s -k --signal --kill-after", operands: 1 },
    time: { values: "-f -o" },
    stdbuf: { values: "-i -o -e" },
    xargs: { values: "-I -n -P -L -d -a -s -E --max-args --max-procs --delimiter --arg-file" },
    parallel: { values: "-j --jobs" },
    flock: { values: "-w -E", operands: 1 },
    strace: { values: "-e -o -p -s -u" },
    watch: { values: "-n --interval" },
    "systemd-run": { values: "-u -p -t --unit --property" },
    nsenter: { values: "-t --target" },
    chroot: { values: "--userspec --groups", operands: 1 },
    runuser: { values: "-u" },
    proot: {},
    unshare: {},
    setsid: {},
    nohup: {},
    exec: { values: "-a" },
    command: {},
    builtin: {},
    busybox: {},
    toybox: {},
    caffeinate: {},
  }),
);

const SHELLS = /^(?:ba|da|z|k|mk|a|fi|tc|c)?sh$/;

/** Words of the shell's grammar that a command may stand behind. */
const KEYWORDS = new Set("if then elif else while until do ! time coproc { ( fi done esac }".split(" "));

/** What is inside a command. */
export type Unwrapped = { kind: "argv"; argv: string[] } | { kind: "shell"; text: string };

/** The program's name without its folder, in the spelling of the rules. */
export function programOf(argv: readonly string[]): string {
  return (argv[0] ?? "").replace(/^.*\//, "");
}

/**
 * The commands that a command runs, one level in: the argument of sudo, env, nice, timeout, xargs and the like, the
 * text of `sh -c`, `eval`, `su -c`, `ssh host`, the command of `find -exec`. Empty for any other program.
 */
export function unwrap(argv: readonly string[], stdin?: string): Unwrapped[] {
  const start = argv.findIndex((word) => !KEYWORDS.has(word) && !/^[A-Za-z_]\w*\+?=/.test(word));
  if (start > 0) return [{ kind: "argv", argv: argv.slice(start) }];
  const program = programOf(argv);
  const rest = argv.slice(1);
  if (SHELLS.test(program)) return shellTexts(rest, stdin);
  if (program === "eval") return [{ kind: "shell", text: rest.join(" ") }];
  if (program === "trap") return [{ kind: "shell", text: rest[0] ?? "" }];
  if (program === "su" || program === "script") return valuesOf(rest, ["-c", "--command"]).map(shell);
  if (program === "ssh") return remote(rest);
  if (program === "find" || program === "fd") return findCommands(rest);
  const splits = program === "env" ? valuesOf(rest, ["-S", "--split-string"]).map(shell) : [];
  const wrapper = WRAPPERS.get(program);
  if (wrapper === undefined) return [];
  const inner = afterOptions(rest, wrapper);
  // watch and parallel hand one word to a shell; for the others a word with blanks names no program.
  if (inner.length === 1 && /\s/.test(inner[0] ?? "")) return [...splits, shell(inner[0] ?? "")];
  return inner.length > 0 ? [...splits, { kind: "argv", argv: inner }] : splits;
}

/** True for a shell that reads its commands from its input. */
export function readsCommands(argv: readonly string[]): boolean {
  return SHELLS.test(programOf(argv)) && !argv.slice(1).some((word) => !word.startsWith("-") || /^-[a-z]*c/.test(word));
}

function shellTexts(rest: readonly string[], stdin: string | undefined): Unwrapped[] {
  const at = rest.findIndex((word) => /^-[A-Za-z]*c[A-Za-z]*$/.test(word));
  if (at >= 0) return [shell(rest.slice(at + 1).find((word) => !/^[-+]/.test(word)) ?? "")];
  return stdin !== undefined ? [shell(stdin)] : [];
}

function shell(text: string): Unwrapped {
  return { kind: "shell", text };
}

function valuesOf(rest: readonly string[], names: readonly string[]): string[] {
  const long = names.find((name) => name.startsWith("--")) ?? names[0];
  return rest.flatMap((word, at) => {
    if (names.includes(word)) return [rest[at + 1] ?? ""];
    return word.startsWith(`${long}=`) ? [word.slice(`${long}=`.length)] : [];
  });
}

function remote(rest: readonly string[]): Unwrapped[] {
  const command = afterOptions(rest, {
    values: "-b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w",
    operands: 1,
  });
  return command.length > 0 ? [shell(command.join(" "))] : [];
}

function findCommands(rest: readonly string[]): Unwrapped[] {
  return rest.flatMap((word, at): Unwrapped[] => {
    if (!/^-(?:exec|execdir|ok|okdir|x|X)$/.test(word)) return [];
    const end = rest.findIndex((each, index) => index > at && (each === ";" || each === "+"));
    return [{ kind: "argv", argv: rest.slice(at + 1, end < 0 ? undefined : end) }];
  });
}

function afterOptions(rest: readonly string[], wrapper: Wrapper): string[] {
  const values = new Set(wrapper.values?.split(" "));
  let at = 0;
  for (; at < rest.length; at++) {
    const word = rest[at] ?? "";
    if (word === "--") {
      at += 1;
      break;
    }
    if (values.has(word)) at += 1;
    else if (!word.startsWith("-")) break;
  }
  return rest.slice(at + (wrapper.operands ?? 0));
}
