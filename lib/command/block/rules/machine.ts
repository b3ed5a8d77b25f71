import { hasOption, operands } from "../options.ts";
import type { Step } from "../state.ts";
import { canonicalPath } from "../targets.ts";
import { valuesOf } from "../wrappers.ts";
import type { BlockRule } from "./rule.ts";

const POWER_UNITS =
  "poweroff|reboot|halt|kexec|soft-reboot|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|rescue|emergency|default|exit";

/** The rule that the shape of a script matches, not a command in it. */
export const FORK_BOMB = "blocklist/fork-bomb";

/** Rules for the running machine: its power state, its first process, its process table. */
export const machineRules: readonly BlockRule[] = [
  {
    name: "blocklist/power",
    message: "stops or restarts the machine",
    match: [
      "shutdown -h now",
      "sudo reboot",
      "/sbin/halt -p",
      "poweroff",
      "init 0",
      "telinit 6",
      "systemctl reboot",
      "systemctl -i poweroff",
      "systemctl isolate rescue.target",
      "loginctl suspend",
      "sh -c 'sleep 1; reboot'",
      "true; shutdown -r +1",
      "nohup reboot &",
      "kexec -e",
      "timeout -s KILL 5 reboot",
      "busybox reboot",
      "rtcwake -m off -s 60",
      "echo mem > /sys/power/state",
      "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager Reboot b true",
      "ipmitool chassis power off",
      "echo reboot | at now",
      "(sleep 5; /sbin/reboot) &",
    ],
    not_match: [
      'echo "shutdown at noon"',
      "shutdown -c",
      "shutdown --help",
      "systemctl status reboot.target",
      "systemctl restart nginx",
      "journalctl --list-boots",
      "last reboot",
      "man shutdown",
      "grep -r poweroff /etc/systemd",
      "init 3 --help",
      "which reboot",
    ],
    test: changesPower,
  },
  {
    name: "blocklist/kill-all",
    message: "ends the machine's first process, or every process",
    match: [
      "kill -9 -1",
      "kill -KILL 1",
      "kill -1",
      "kill 1",
      "kill -s TERM -- -1",
      "kill -HUP 1",
      "killall5 -9",
      "pkill -9 systemd",
      "killall init",
      "pkill -9 .",
      "python3 -c 'import os; os.kill(-1, 9)'",
    ],
    not_match: [
      "kill -9 1234",
      "kill -1 1234",
      "kill -l 1",
      "kill -0 1",
      "kill %1",
      "pkill -f my-server",
      "kill -TERM -- -1234",
      "echo kill -9 1",
    ],
    test: killsAll,
  },
  {
    name: "blocklist/sysrq",
    message: "makes the kernel stop, restart or sync at once",
    match: [
      "echo b > /proc/sysrq-trigger",
      "echo c | sudo tee /proc/sysrq-trigger",
      "cd /proc && echo b > sysrq-trigger",
    ],
    not_match: ["cat /proc/sys/kernel/sysrq", "sysctl kernel.sysrq", "ls -l /proc/sysrq-trigger"],
    test({ program, args, writes, appends, folder }) {
      const trigger = (word: string): boolean => canonicalPath(word, folder) === "/proc/sysrq-trigger";
      return (
        [...writes, ...appends].some(trigger) ||
        (/^(?:tee|dd|cp)$/.test(program) && args.some((word) => trigger(word.replace(/^of=/, ""))))
      );
    },
  },
  {
    name: FORK_BOMB,
    message: "makes processes without end",
    match: [
      ":(){ :|:& };:",
      ":(){:|:&};:",
      ": ( ) { : | : & } ; :",
      "bomb() { bomb | bomb & }; bomb",
      "f(){ f& f& };f",
      "function b { b | b & }; b",
      "perl -e 'fork while fork'",
      "python3 -c 'import os\nwhile True: os.fork()'",
      "$0 | $0 &",
      "a(){ b|b& }; b(){ a|a& }; a",
      "while true; do bash -c 'sleep 999' & done",
      "ruby -e 'loop { fork }'",
    ],
    not_match: [
      "say() { echo hi | cat & }; say",
      'walk() { for f in "$1"/*; do walk "$f"; done; }; walk .',
      "sleep 1 & sleep 1 &",
      "perl -e 'my $pid = fork; exit unless $pid'",
      "echo ':(){ :|:& };:'",
      "git log | cat &",
    ],
    test: ({ program, args, detached }) => program === "$0" && args.length === 0 && detached,
  },
];

const POWER_METHOD =
  /^(?:org\.freedesktop\.login1\.Manager\.)?(?:PowerOff|Reboot|Halt|Suspend|Hibernate|HybridSleep|SuspendThenHibernate)(?:WithFlags)?$/;

function changesPower({ program, args, writes, folder }: Step): boolean {
  if (writes.some((file) => canonicalPath(file, folder) === "/sys/power/state")) return true;
  if (hasOption(args, "", "--help", "--version")) return false;
  if (program === "shutdown") return !hasOption(args, "c", "--cancel");
  if (/^(?:reboot|halt|poweroff)$/.test(program)) return true;
  if (program === "init" || program === "telinit") return /^[06]$/.test(args[0] ?? "");
  if (/^(?:busctl|dbus-send|gdbus|qdbus)$/.test(program)) return args.some((word) => POWER_METHOD.test(word));
  if (/^(?:rtcwake|pm-suspend|pm-hibernate|s2ram|s2disk|zzz)$/.test(program))
    return !/^(?:no|show|disable|on)$/.test(args[args.indexOf("-m") + 1] ?? "");
  if (program === "ipmitool") return /\bpower (?:off|cycle|reset|soft)\b/.test(args.join(" "));
  if (program === "tee") return args.some((file) => canonicalPath(file, folder) === "/sys/power/state");
  if (program === "kexec") return hasOption(args, "e", "--exec");
  if (program !== "systemctl" && program !== "loginctl") return false;
  const [verb = "", unit = ""] = operands(args);
  if (new RegExp(`^(?:${POWER_UNITS})$`).test(verb)) return true;
  return /^(?:isolate|start)$/.test(verb) && new RegExp(`^(?:${POWER_UNITS}|runlevel[016])\\.target$`).test(unit);
}

function killsAll({ program, args }: Step): boolean {
  if (program === "killall5") return true;
  const ofRoot = valuesOf(args, "uU", "user", "euid", "uid").some((name) => name === "root" || name === "0");
  if (/^(?:pkill|killall|skill|slay)$/.test(program) && ofRoot)
    return operands(args).every((name) => /^(?:root|0|[.*]*)$/.test(name));
  if (program === "pkill" || program === "killall")
    return operands(args).some((name) => /^\^?(?:systemd|init|launchd|\.[*+]?|\.\*)\$?$/.test(name));
  if (program !== "kill" || args.some((word) => /^-(?:[lL]|0)$/.test(word))) return false;
  const targets = killTargets(args);
  return targets.length === 0 ? args.includes("-1") : targets.some((word) => word === "1" || word === "-1");
}

/** The words of a kill that name processes: not the signal, which is the first word with a dash. */
function killTargets(args: readonly string[]): string[] {
  const rest = [...args];
  if (/^-(?:s|n|-signal)$/.test(rest[0] ?? "")) rest.splice(0, 2);
  else if (/^-(?!-$)/.test(rest[0] ?? "")) rest.shift();
  return rest.filter((word) => word !== "--");
}
