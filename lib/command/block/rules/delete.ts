import { hasOption, isNarrowed, operands, searchedFolders } from "../options.ts";
import type { Step } from "../state.ts";
import { canonicalPath, isHome, isSystemTree, isVitalFile } from "../targets.ts";
import { valuesOf } from "../wrappers.ts";
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
      "X=/; rm -rf $X",
      "rm -rf $UNSET/*",
      "a=rm b=-rf; $a $b /",
      `rm\${IFS}-rf\${IFS}/`,
      "{rm,-rf,/}",
      `rm -rf \${PATH:0:1}`,
      "echo cm0gLXJmIC8= | base64 -d | sh",
      "$(printf '\\x72\\x6d') -rf /",
      "`which rm` -rf /",
      'f() { rm -rf "$1"; }; f /',
      "for d in /etc /usr; do rm -rf $d; done",
      `c=(rm -rf /); "\${c[@]}"`,
      'set -- rm -rf /; "$@"',
      "alias x='rm -rf /'; x",
      "trap 'rm -rf /' EXIT",
      "echo 'rm -rf /' > /tmp/x; sh /tmp/x",
      "find / -type f -print0 | xargs -0 rm -f",
      "cd /; ls | xargs rm -rf",
      "python3 -c 'import os; os.system(\"rm -rf /\")'",
      "python3 -c 'import shutil; shutil.rmtree(\"/\")'",
      'perl -e \'system("rm", "-rf", "/")\'',
      "awk 'BEGIN { system(\"rm -rf /\") }'",
      "docker run -v /:/host alpine rm -rf /host",
      "rm -rf /proc/1/root/",
      "coproc rm -rf /",
      "while read d; do rm -rf $d; done <<< /",
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
      "X=/tmp/a; rm -rf $X/b",
      "rm -rf $(mktemp -d)",
      'd=$(mktemp -d); rm -rf "$d"/*',
      "python3 -c 'print(\"rm -rf /\")'",
      "echo 'rm -rf /' | base64",
      "git log --grep 'rm -rf /'",
      "for d in a b; do rm -rf ./$d; done",
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
      "chmod 000 /",
      "chown -R daemon ~",
      "mv ~ /tmp/x",
      "setfacl -R -m u:a:rwx /usr",
    ],
    not_match: ["chmod -R 755 /srv/app", "chmod 644 /etc/motd", "mv /etc/x.conf /tmp", "mv a /tmp", "ls /etc"],
    test: changesSystem,
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
      "rm -f /etc/pass*",
      "mv /etc/shadow /tmp",
      "tee /etc/passwd < /dev/null",
      "dd if=/dev/null of=/etc/passwd",
      "sed -i d /etc/passwd",
      "rm /bin/sh",
      "cat /dev/null > /boot/grub/grub.cfg",
    ],
    not_match: [
      "cat /etc/passwd > /tmp/x",
      "grep root /etc/passwd",
      "cp /etc/fstab /tmp/fstab",
      "echo hi > /etc/motd",
      "ls /boot/grub",
      "sed -i 's/a/b/' /etc/fstab",
      "echo x >> /etc/fstab",
      "tee -a /etc/fstab",
      "cp /bin/sh /tmp/sh",
    ],
    test: destroysVital,
  },
];

function deletesSystem({ program, args, folder }: Step): boolean {
  const dangerous = (name: string): boolean => isSystemTree(name, folder) || isHome(name, folder);
  const names = operands(args);
  switch (program) {
    case "rm":
    case "srm":
    case "wipe": {
      const deep = hasOption(args, "rR", "--recursive", "--no-preserve-root");
      return names.some((name) => dangerous(name) && (deep || name.endsWith("/**")));
    }
    case "find":
    case "fd":
    case "fdfind":
      return deletesFound(args) && !isNarrowed(args) && searchedFolders(args).some(dangerous);
    case "rsync":
      return args.some((word) => word.startsWith("--del")) && dangerous(names.at(-1) ?? "");
    case "tar":
      return args.includes("--remove-files") && names.some(dangerous);
    case "zip":
      return hasOption(args, "m", "--move") && names.some(dangerous);
    default:
      return program === "shred" && names.some(dangerous);
  }
}

/** True for a find that deletes what it finds. */
function deletesFound(args: readonly string[]): boolean {
  if (args.includes("-delete")) return true;
  const at = args.findIndex((word) => /^-(?:exec|execdir|ok|okdir|x|X)$|^--exec/.test(word));
  return (
    at >= 0 && args.slice(at + 1).some((word) => /(?:^|[\s/;&|])(?:rm|shred|unlink|srm|truncate)(?:\s|$)/.test(word))
  );
}

const CHANGES = /^(?:chmod|chown|chgrp|chattr|setfacl)$/;

function changesFound(args: readonly string[]): boolean {
  const at = args.findIndex((word) => /^-(?:exec|execdir|ok|okdir)$/.test(word));
  return at >= 0 && args.slice(at + 1).some((word) => CHANGES.test(word.replace(/^.*\//, "")));
}

function changesSystem({ program, args, folder }: Step): boolean {
  const names = operands(args);
  const whole = (name: string): boolean => isSystemTree(name, folder) || isHome(name, folder);
  if (program === "mv") {
    const named = valuesOf(args, "t", "target-directory").length > 0;
    return (named || names.length < 2 ? names : names.slice(0, -1)).some(whole);
  }
  if (program === "find") return changesFound(args) && !isNarrowed(args) && searchedFolders(args).some(whole);
  if (!CHANGES.test(program)) return false;
  // A mode such as "-x" looks like an option.
  if (names.some((name) => canonicalPath(name, folder) === "/")) return true;
  const deep = hasOption(args, "R", "--recursive");
  return names.some((name) => whole(name) && (deep || name.endsWith("/**")));
}

function destroysVital({ program, args, writes, folder }: Step): boolean {
  const vital = (file: string): boolean => isVitalFile(file, folder);
  if (writes.some(vital)) return true;
  const names = operands(args);
  switch (program) {
    case "userdel":
    case "deluser":
      return names.includes("root");
    case "truncate":
    case "shred":
    case "rm":
    case "unlink":
    case "srm":
    case "sponge":
      return names.some(vital);
    case "tee":
      return !hasOption(args, "a", "--append") && names.some(vital);
    case "dd":
      return args.some((word) => word.startsWith("of=") && vital(word.slice(3)));
    case "mv":
      return names.slice(0, -1).some(vital) || (names[0] === "/dev/null" && vital(names.at(-1) ?? ""));
    case "sed":
      return (
        hasOption(args, "i", "--in-place") &&
        names.some((name) => /^(?:1,\$|\/\.[*+]?\/)?d$/.test(name)) &&
        names.some(vital)
      );
    default:
      return (
        /^(?:cp|ln|install)$/.test(program) &&
        /^\/dev\/(?:null|zero)$/.test(names[0] ?? "") &&
        vital(names.at(-1) ?? "")
      );
  }
}
