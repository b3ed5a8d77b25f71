import { hasOption, operands } from "../options.ts";
import { isDataDevice } from "../targets.ts";
import { valuesOf } from "../wrappers.ts";
import type { BlockRule } from "./rule.ts";

const HELP = /^(?:-V|-h|--version|--help)$/;

/** Options that make a tool for disks destroy what is on them. */
const DISK_TOOLS: ReadonlyMap<string, RegExp> = new Map(
  Object.entries({
    wipefs: /^(?:-[a-z]*[ao].*|--all.*|--offset.*)$/,
    sgdisk: /^(?:-[A-Za-z]*[Zzodn].*|--zap.*|--clear|--delete.*|--new.*)$/,
    parted: /^(?:mklabel|mktable|mkpart|rm|resizepart)$/,
    hdparm: /^--(?:security-erase|trim-sector|write-sector|make-bad-sector|repair-sector).*$/,
    nvme: /^(?:format|sanitize|write-zeroes|delete-ns)$/,
    gdisk: /^\/dev\//,
    cryptsetup: /^(?:luksFormat|luksErase|luksKillSlot|luksRemoveKey|luksHeaderRestore|erase|reencrypt|format)$/,
    mdadm: /^(?:--zero-superblock|--stop|-S|--create|-C|--remove|-r)$/,
    zpool: /^(?:destroy|labelclear)$/,
    zfs: /^destroy$/,
    dmsetup: /^(?:remove|remove_all|wipe_table)$/,
    sg_format: /^(?:--format|-F)$/,
    sg_sanitize: /^-/,
    nwipe: /^\/dev\//,
    scrub: /^\/dev\//,
    ntfsclone: /^(?:--overwrite|-O)/,
    wipe: /^\/dev\//,
    badblocks: /^-[a-z]*w.*$/,
    diskutil: /^(?:erase\w*|partitionDisk|zeroDisk|secureErase|reformat)$/i,
  }),
);

/** Rules for disks: what is written over a device is gone. */
export const deviceRules: readonly BlockRule[] = [
  {
    name: "blocklist/write-device",
    message: "writes over a device, and what is on it is lost",
    match: [
      "dd if=/dev/zero of=/dev/sda",
      "sudo dd of=/dev/nvme0n1 if=x bs=1M",
      "dd if=a 'of=/dev/'sdb",
      ":>/dev/sda",
      "> /dev/sda",
      "cat x >> /dev/mapper/root",
      "echo x >| /dev/vda1",
      "cat x &> /dev/sdb",
      "cp image /dev/mmcblk0",
      "tee /dev/sda < x",
      "shred -n1 /dev/sda",
      "truncate -s 0 /dev/sda",
      "D=/dev/sda; dd if=/dev/zero of=$D",
      "curl -o /dev/sda http://x/image",
      `DISK=$(lsblk -dno NAME); dd if=/dev/urandom of=/dev/\${DISK}`,
      'python3 -c \'open("/dev/sda", "wb").write(b"")\'',
      "cat x > /dev/../dev/sda",
    ],
    not_match: [
      "dd if=/dev/sda of=disk.img count=1",
      "dd if=/dev/zero of=/dev/null",
      "ls > /dev/null 2>&1",
      "echo x > /dev/stderr",
      "echo x > /dev/tcp/host/80",
      "echo AT > /dev/ttyUSB0",
      "cp /dev/sda1 backup.img",
      "cat /dev/sda",
      "echo 'dd of=/dev/sda'",
    ],
    test({ program, args, writes, appends, folder }) {
      const device = (word: string): boolean => isDataDevice(word, folder);
      if ([...writes, ...appends].some(device)) return true;
      if (/^(?:dd|dcfldd|dc3dd)$/.test(program))
        return args.some((word) => /^(?:of|wipe)=/.test(word) && device(word.slice(word.indexOf("=") + 1)));
      if (/^(?:tee|shred|truncate|sponge)$/.test(program)) return operands(args).some(device);
      if (/^(?:curl|wget|sort|pv|xz|aria2c)$/.test(program))
        return valuesOf(args, "oO", "output", "output-document").some(device);
      return /^(?:cp|mv|install|ddrescue|qemu-img|pixz)$/.test(program) && device(operands(args).at(-1) ?? "");
    },
  },
  {
    name: "blocklist/format-disk",
    message: "makes a new file system, or destroys a partition, volume or pool",
    match: [
      "mkfs.ext4 /dev/sda1",
      "mkfs -t xfs /dev/sdb",
      "/sbin/mke2fs disk.img",
      "mkswap /dev/sda2",
      "wipefs -a /dev/sda",
      "wipefs --all --force x",
      "sgdisk --zap-all /dev/sda",
      "parted -s /dev/sda mklabel gpt",
      "sfdisk /dev/sda",
      "blkdiscard /dev/nvme0n1",
      "cryptsetup luksFormat /dev/sda1",
      "lvremove -y vg/root",
      "zpool destroy tank",
      "nvme format /dev/nvme0n1",
    ],
    not_match: [
      "mkfs.ext4 --help",
      "man mkfs",
      "wipefs /dev/sda",
      "fdisk -l",
      "sfdisk --dump /dev/sda",
      "parted -l",
      "zpool status",
      "nvme list",
      "cryptsetup status x",
      "lvs",
      "echo mkfs.ext4",
    ],
    test({ program, args }) {
      if (args.some((word) => HELP.test(word))) return false;
      if (
        /^(?:mkfs(?:\..+)?|mke2fs|mkswap|mkdosfs|newfs(?:_\w+)?|blkdiscard|make-bcache|mkntfs|lvreduce|pvcreate|(?:lv|vg|pv)remove)$/.test(
          program,
        )
      )
        return true;
      if (/^(?:c?fdisk|sfdisk)$/.test(program))
        return args.length > 0 && !hasOption(args, "lds", "--list", "--dump", "--json", "--verify");
      const destroys = DISK_TOOLS.get(program);
      return destroys !== undefined && args.some((word) => destroys.test(word));
    },
  },
];
