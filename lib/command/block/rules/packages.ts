import { operands } from "../options.ts";
import type { Step } from "../state.ts";
import { valuesOf } from "../wrappers.ts";
import type { BlockRule } from "./rule.ts";

/** Packages without which a system does not start, log anybody in, or install anything. */
const ESSENTIAL =
  /^(?:apt|aptitude|base-files|base-passwd|bash|bsdutils|coreutils|dash|debianutils|diffutils|dpkg|e2fsprogs|findutils|grep|gzip|hostname|init|init-system-helpers|libc-bin|libc6|libc6-dev|libc|glibc|musl|login|mount|ncurses-b\w+|perl-base|sed|sysvinit-utils|systemd|systemd-sysv|systemd-\w+|tar|util-linux|udev|passwd|sudo|libpam\S*|pam|kernel|kernel-core|linux|linux-(?:image|base|generic|modules|\*)\S*|grub\S*|initramfs-tools|dracut|filesystem|setup|rpm|dnf|yum|zypper|pacman|apk-tools|alpine-base\S*|busybox|shadow|python3?|python3-minimal|openssl|libssl\S*|ca-certificates|\.?\*+)(?::\w+)?$/;

const REMOVES: ReadonlyMap<string, RegExp> = new Map([
  ["apt", /^(?:remove|purge|autoremove|autopurge)$/],
  ["apt-get", /^(?:remove|purge|autoremove|autopurge)$/],
  ["aptitude", /^(?:remove|purge)$/],
  ["dnf", /^(?:remove|erase)$/],
  ["yum", /^(?:remove|erase)$/],
  ["microdnf", /^remove$/],
  ["zypper", /^(?:remove|rm)$/],
  ["apk", /^del$/],
  ["pacman", /^-[a-z]*R[a-z]*$/],
  ["rpm", /^(?:-e\w*|--erase)$/],
  ["dpkg", /^(?:-r|-P|--remove|--purge|-[a-z]*[rP])$/],
  ["xbps-remove", /^/],
  ["emerge", /^(?:-C|--unmerge|-c)$/],
]);

/** Flash memory that holds what a machine starts with. */
const FLASH = /^\/(?:dev\/(?:mtd|nvram|ubi)\w*|sys\/firmware\/efi\/efivars\/.+)$/;

/** Rules for what the system is made of: its packages, and the firmware below it. */
export const packageRules: readonly BlockRule[] = [
  {
    name: "blocklist/essential-package",
    message: "removes a package that the system cannot work without",
    match: [
      "apt-get remove -y libc6",
      "apt purge systemd",
      "sudo dpkg --purge --force-all coreutils",
      "dpkg -r --force-remove-essential bash",
      "rpm -e --nodeps glibc",
      "dnf remove -y kernel",
      "pacman -Rdd glibc",
      "apk del musl",
      "apt-get -y --allow-remove-essential remove bash",
      "apt-get remove 'linux-image-*'",
      "DEBIAN_FRONTEND=noninteractive apt-get purge dpkg",
    ],
    not_match: [
      "apt-get remove nginx",
      "apt remove --dry-run vim",
      "apt-get install coreutils",
      "dpkg -l bash",
      "apt-cache show libc6",
      "rpm -q glibc",
      "pacman -Qi glibc",
      "apt-get autoremove",
    ],
    test: removesEssential,
  },
  {
    name: "blocklist/firmware",
    message: "writes or deletes the firmware that the machine starts with",
    match: [
      "flashrom -p internal -w bios.bin",
      "efibootmgr -b 0000 -B",
      "flash_erase /dev/mtd0 0 0",
      "nandwrite -p /dev/mtd2 image",
      "rm /sys/firmware/efi/efivars/Boot0000-8be4",
      "fwupdmgr install firmware.cab",
      "mtd erase firmware",
    ],
    not_match: [
      "flashrom -p internal -r backup.bin",
      "efibootmgr -v",
      "fwupdmgr get-devices",
      "ls /sys/firmware/efi/efivars",
      "mtdinfo /dev/mtd0",
    ],
    test: changesFirmware,
  },
];

function removesEssential({ program, args }: Step): boolean {
  const removes = REMOVES.get(program);
  if (removes === undefined || args.some((word) => /^(?:-s|--dry-run|--simulate|--just-print|--test)$/.test(word)))
    return false;
  if (args.some((word) => /^--(?:allow-remove-essential|force-remove-essential)$/.test(word))) return true;
  if (!args.some((word) => removes.test(word))) return false;
  const values = new Set(valuesOf(args, "ot", "option", "target-release"));
  return operands(args).some((name) => !removes.test(name) && !values.has(name) && ESSENTIAL.test(name));
}

function changesFirmware({ program, args, writes }: Step): boolean {
  if (writes.some((file) => FLASH.test(file))) return true;
  switch (program) {
    case "flashrom":
      return args.some((word) => /^(?:-[a-zA-Z]*[wE].*|--write.*|--erase.*)$/.test(word));
    case "efibootmgr":
      return args.some((word) => /^(?:-B|--delete-bootnum|-[a-zA-Z]*B)$/.test(word));
    case "fwupdmgr":
    case "fwupdtool":
      return /^(?:install|install-blob|downgrade|reinstall|uninstall)$/.test(operands(args)[0] ?? "");
    case "flash_erase":
    case "flash_eraseall":
    case "nandwrite":
    case "flashcp":
    case "mtd_debug":
    case "nvflash":
    case "amdvbflash":
    case "afulnx":
      return args.length > 0 && !args.some((word) => /^(?:--help|--version|read|info)$/.test(word));
    case "mtd":
      return /^(?:erase|write|-r|-e)$/.test(args[0] ?? "");
    case "rm":
    case "mv":
    case "shred":
      return operands(args).some((file) => FLASH.test(file));
    default:
      return false;
  }
}
