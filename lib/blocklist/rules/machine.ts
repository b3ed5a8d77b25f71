import { type Command, hasOption, operands } from "../command.ts";
import { canonicalPath } from "../targets.ts";
import type { BlockRule } from "./rule.ts";

const POWER_UNITS =
  "poweroff|reboot|halt|kexec|soft-reboot|suspend|hibernate|hybrid-sleep|suspend-then-hibernate|rescue|emergency|default|exit";

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
    test({ program, args, writes, folder }) {
      const trigger = (word: string): boolean => canonicalPath(word, folder) === "/proc/sysrq-trigger";
      return (
        writes.some(trigger) ||
        (/^(?:tee|dd|cp)$/.test(program) && args.some((word) => trigger(word.replace(/^of=/, ""))))
      );
    },
  },
  {
    name: "blocklist/fork-bomb",
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
    test: bombs,
  },
];

function changesPower({ program, args }: Command): boolean {
  if (hasOption(args, "", "--help", "--version")) return false;
  if (program === "shutdown") return !hasOption(args, "c", "--cancel");
  if (/^(?:reboot|halt|poweroff)$/.test(program)) return true;
  if (program === "init" || program === "telinit") return /^[06]$/.test(args[0] ?? "");
  if (program === "kexec") return hasOption(args, "e", "--exec");
  if (program !== "systemctl" && program !== "loginctl") return false;
  const [verb = "", unit = ""] = operands(args);
  if (new RegExp(`^(?:${POWER_UNITS})$`).test(verb)) return true;
  return /^(?:isolate|start)$/.test(verb) && new RegExp(`^(?:${POWER_UNITS}|runlevel[016])\\.target$`).test(unit);
}

function killsAll({ program, args }: Command): boolean {
  if (program === "killall5") return true;
  if (program === "pkill" || program === "killall")
    return operands(args).some((name) => /^(?:systemd|init|launchd)$/.test(name));
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

function bombs({ program, args, next, inFunction }: Command): boolean {
  if (inFunction !== undefined && program === inFunction) return next !== "";
  if (program === "$0") return next === "|" && args.length === 0;
  if (!/^(?:perl|python[\d.]*|ruby|node|php)$/.test(program)) return false;
  const code = args.join(" ");
  return /fork\s*(?:\(\s*\))?\s*while\s+(?:fork|1|true)|(?:while|loop|for)\s*[({]?\s*(?:1|true|True|;;)?\s*[)}]?\s*[:{]?\s*(?:os\.)?fork\b/.test(
    code,
  );
}
