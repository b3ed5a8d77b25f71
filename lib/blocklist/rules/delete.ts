import { type Command, hasOption, operands } from "../command.ts";
import { isHome, isSystemTree, isVitalFile } from "../targets.ts";
import type { BlockRule } from "./rule.ts";

/** Rules for what cannot be brought back from a disk: whole trees of the system, homes, files that it starts with. */
export const deleteRules: readonly BlockRule[] = [
  {
    name: "blocklist/delete-system",
    message: "deletes the whole system, one of its trees, or a whole home",
    match: [
      "rm -rf /",
      "rm -fr / --no-preserve-root",
      "rm -r -f /*",
      "rm --recursive --force //",
      "rm -Rf /./",
      "rm -rf /tmp/../",
      "sudo rm -rf /etc",
      "/bin/rm -rf /usr/",
      "r''m -r\"f\" '/'",
      "\\rm -rf $'\\x2f'",
      "rm -rf / tmp/cache",
      "rm -rf ~",
      'rm -rf "$HOME"/*',
      `rm -rf \${HOME}`,
      "rm -rf /home/ana",
      "rm -rf /{etc,tmp}",
      "rm -rf /e?c",
      "cd / && rm -rf *",
      "cd /usr; rm -rf ./lib",
      "bash -c 'rm -rf /'",
      'sh -ec "true; rm -rf /"',
      "env -i A=b nice -n 5 timeout 10 rm -rf /",
      "echo / | xargs rm -rf /var",
      "echo 'rm -rf /' | sh",
      "bash <<< 'rm -rf /'",
      "bash <<EOF\nrm -rf /\nEOF",
      "echo $(rm -rf /)",
      'echo "`rm -rf /`"',
      "cat <(rm -rf /)",
      "if true; then rm -rf /; fi",
      "f() { rm -rf /; }; f",
      "true && A=1 rm -rf /",
      "ssh host rm -rf /",
      "su -c 'rm -rf /' root",
      "find /x -exec rm -rf / \\;",
      "eval 'rm -rf' /",
      "find / -delete",
      "find /etc -type f -exec rm {} +",
      "rsync -a --delete empty/ /",
      "rm -rf -- /",
      "rm -rf 2>/dev/null /",
    ],
    not_match: [
      'grep "rm -rf /" notes.txt',
      "echo 'rm -rf /' > notes.txt",
      "echo rm -rf /",
      "# rm -rf /",
      "rm -rf /tmp/build",
      "rm -rf ./node_modules",
      "rm -rf ~/project/dist",
      "rm -rf /home/ana/tmp",
      "rm /tmp/x",
      "cd /tmp/x && rm -rf *",
      "rm -rf /var/tmp/x",
      "git commit -m 'never rm -rf / again'",
      "find / -name core -type f -delete",
      "cat <<EOF\nrm -rf /\nEOF",
      "ls -R /",
      "rm -i /etc/motd",
    ],
    test: deletesSystem,
  },
  {
    name: "blocklist/change-system",
    message: "moves a tree of the system, or changes who may use all of it",
    match: [
      "chmod -R 777 /",
      "chown -R daemon /etc",
      "chmod --recursive a+rwx /usr/*",
      "mv /etc /tmp/x",
      "mv /* /tmp",
      "chgrp -R users /var",
    ],
    not_match: [
      "chmod -R 755 /srv/app",
      "chown -R ana ~",
      "chmod 644 /etc/motd",
      "mv /etc/x.conf /tmp",
      "mv a /tmp",
      "ls /etc",
    ],
    test({ program, args, folder }) {
      const names = operands(args);
      if (program === "mv") return names.slice(0, -1).some((name) => isSystemTree(name, folder));
      if (!/^(?:chmod|chown|chgrp|chattr|setfacl)$/.test(program)) return false;
      return hasOption(args, "R", "--recursive") && names.slice(1).some((name) => isSystemTree(name, folder));
    },
  },
  {
    name: "blocklist/vital-file",
    message: "empties or replaces a file that the machine needs to start or to let anybody in",
    match: [
      ": > /etc/passwd",
      "> /etc/shadow",
      "truncate -s 0 /etc/fstab",
      "cp /dev/null /etc/sudoers",
      "echo x >| /boot/vmlinuz",
      "rm -f /etc/passwd",
    ],
    not_match: [
      "cat /etc/passwd > /tmp/x",
      "grep root /etc/passwd",
      "cp /etc/fstab /tmp/fstab",
      "echo hi > /etc/motd",
      "ls /boot/grub",
    ],
    test({ program, args, writes, folder }) {
      if (writes.some((file) => isVitalFile(file, folder))) return true;
      const names = operands(args);
      if (/^(?:truncate|shred|rm|unlink)$/.test(program)) return names.some((name) => isVitalFile(name, folder));
      return /^(?:cp|mv|ln)$/.test(program) && names[0] === "/dev/null" && isVitalFile(names.at(-1) ?? "", folder);
    },
  },
];

function deletesSystem({ program, args, folder }: Command): boolean {
  const dangerous = (name: string): boolean => isSystemTree(name, folder) || isHome(name, folder);
  const names = operands(args);
  if (program === "rm") {
    return (hasOption(args, "rR", "--recursive") || hasOption(args, "", "--no-preserve-root")) && names.some(dangerous);
  }
  if (program === "find") return deletesAllFound(args) && names.some(dangerous);
  if (program === "rsync") return args.some((word) => word.startsWith("--del")) && dangerous(names.at(-1) ?? "");
  return program === "shred" && names.some(dangerous);
}

/** True for a find that deletes what it finds and has no test that narrows it. */
function deletesAllFound(args: readonly string[]): boolean {
  const deletes =
    args.includes("-delete") ||
    args.some((word, at) => word.startsWith("-exec") && /(?:^|\/)(?:rm|shred|unlink)$/.test(args[at + 1] ?? ""));
  const harmless =
    /^-(?:delete|exec|execdir|depth|d|xdev|mount|type|mindepth|maxdepth|print|ignore_readdir_race|H|L|P|f|r|rf|fr|v)$/;
  return deletes && args.every((word) => !/^-[a-z]/i.test(word) || harmless.test(word));
}
