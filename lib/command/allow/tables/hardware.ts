import type { ProgramRule } from "../rule.ts";

/** What repeats without an end has one number: how often, but not how many times. */
function repeats(words: readonly string[]): string | undefined {
  return words.filter((word) => /^\d+$/.test(word)).length === 1 ? "it does not end by itself" : undefined;
}

function hasNumber(words: readonly string[]): string | undefined {
  return words.some((word) => /^\d/.test(word)) ? "it repeats" : undefined;
}

/** Programs that say what a machine is made of, how it is partitioned, and what its firewall lets through. */
export const hardwareRules: readonly ProgramRule[] = [
  {
    program: "dmidecode",
    sandbox: "optional",
    flags: "-t=names --type=names -s=name --string=name -q --quiet",
    match: ["dmidecode -t memory"],
    not_match: ["dmidecode --dump-bin x", "dmidecode --from-dump x", "dmidecode -d /dev/mem"],
  },
  {
    program: "lshw",
    sandbox: "optional",
    style: "single",
    flags: "-short -businfo -numeric -sanitize -quiet -json -xml -html -c=name -C=name -class=name",
    match: ["lshw -short", "lshw -C network"],
    not_match: ["lshw -X", "lshw -dump x"],
  },
  {
    program: "lvs vgs pvs",
    sandbox: "optional",
    flags:
      "-a --all -o=columns --options=columns --noheadings --nosuffix --units=name -v --separator=any --reportformat=name -O=columns",
    operands: "address*",
    match: ["lvs", "pvs -o pv_name,vg_name", "vgs vg0"],
    not_match: ["lvs --config x", "vgs --commandprofile x", "lvs --profile x"],
  },
  {
    program: "zpool",
    sandbox: "optional",
    subcommands: { "status list": { flags: "-v -x -H -p -P -L -o=columns", operands: "name*", check: hasNumber } },
    match: ["zpool status", "zpool list -v tank"],
    not_match: ["zpool destroy tank", "zpool status 5", "zpool status -c x"],
  },
  {
    program: "zfs",
    sandbox: "optional",
    subcommands: { list: { flags: "-r -H -p -o=columns -t=names -d=int -s=name -S=name", operands: "address*" } },
    match: ["zfs list -t snapshot"],
    not_match: ["zfs destroy x", "zfs set a=b x", "zfs send x"],
  },
  {
    program: "smartctl",
    sandbox: "optional",
    flags: "-i --info -a --all -H --health -A --attributes -c --capabilities -x --xall --scan",
    operands: "path?",
    match: ["smartctl -H /dev/sda", "smartctl --scan"],
    not_match: ["smartctl -t long /dev/sda", "smartctl -s on /dev/sda", "smartctl -X /dev/sda"],
  },
  {
    program: "sensors",
    sandbox: "optional",
    flags: "-u -j -A -f",
    match: ["sensors"],
    not_match: ["sensors -s", "sensors -c x"],
  },
  {
    program: "nvidia-smi",
    sandbox: "optional",
    flags: "-L --list-gpus -q --query -d=names --query-gpu=names --format=names -i=names --id=names",
    match: ["nvidia-smi", "nvidia-smi --query-gpu=name,memory.used --format=csv"],
    not_match: ["nvidia-smi -r", "nvidia-smi -pm 1", "nvidia-smi -l 1", "nvidia-smi -f x"],
  },
  {
    program: "acpi",
    sandbox: "optional",
    flags: "-a -b -t -c -V -i -f",
    match: ["acpi -b"],
    not_match: ["acpi -d /x"],
  },
  {
    program: "upower",
    sandbox: "required",
    flags: "-d --dump -e --enumerate -i=address --show-info=address",
    needs: "-d --dump -e --enumerate -i --show-info",
    match: ["upower -d"],
    not_match: ["upower", "upower --monitor"],
  },
  {
    program: "numactl",
    sandbox: "optional",
    flags: "-H --hardware -s --show",
    needs: "-H --hardware -s --show",
    match: ["numactl --hardware"],
    not_match: ["numactl ls", "numactl -H ls", "numactl --physcpubind=0 ls"],
  },
  {
    program: "sar pidstat",
    sandbox: "optional",
    flags: "-u -r -q -b -d -B -S -W -w -t -l -h -p=any -A -n=names",
    operands: "count{2}",
    check: repeats,
    match: ["sar -u 1 3", "pidstat", "sar -n DEV"],
    not_match: ["sar 1", "sar -o x 1 2", "sar -f x", "pidstat -e ls", "pidstat 1"],
  },
  {
    program: "iptables ip6tables",
    sandbox: "optional",
    flags: "-L --list -S --list-rules -n --numeric -v --verbose -x --exact --line-numbers -t=name --table=name",
    operands: "name?",
    needs: "-L --list -S --list-rules",
    match: ["iptables -L -n -v", "iptables -t nat -S", "iptables -L INPUT --line-numbers"],
    not_match: ["iptables -F", "iptables -L -Z", "iptables -A INPUT", "iptables", "iptables -L --modprobe=x"],
  },
  {
    program: "nft",
    sandbox: "optional",
    flags: "-a --handle -n --numeric -j --json -s --stateless",
    subcommands: { list: { operands: "ruleset|tables|table|chains|chain|sets|set name{3}" } },
    match: ["nft list ruleset", "nft -a list table inet filter"],
    not_match: ["nft flush ruleset", "nft -f x", "nft 'list ruleset; flush ruleset'", "nft list ruleset ';' flush"],
  },
  {
    program: "ufw",
    sandbox: "optional",
    subcommands: { status: { operands: "verbose|numbered?" }, version: {} },
    match: ["ufw status", "ufw status verbose"],
    not_match: ["ufw disable", "ufw allow 22", "ufw --force reset"],
  },
  {
    program: "ethtool",
    sandbox: "optional",
    flags: "-i --driver -k --show-features -g --show-ring -S --statistics -a -c -l -T -P",
    operands: "name",
    match: ["ethtool eth0", "ethtool -i eth0"],
    not_match: ["ethtool -s eth0 speed 10", "ethtool -K eth0 tso off", "ethtool -E eth0", "ethtool eth0 x"],
  },
  {
    program: "nmcli",
    sandbox: "required",
    flags: "-t --terse -p --pretty -f=columns --fields=columns -c=name --colors=name",
    subcommands: {
      "device dev": { bare: true, subcommands: { status: {}, show: { operands: "name?" } } },
      "connection con": { bare: true, subcommands: { show: { flags: "--active", operands: "name*" } } },
      "general gen": { bare: true, subcommands: { "status permissions": {} } },
    },
    match: ["nmcli device status", "nmcli connection show --active", "nmcli -t -f DEVICE,STATE dev"],
    not_match: [
      "nmcli connection up x",
      "nmcli -s connection show x",
      "nmcli device wifi connect x",
      "nmcli general hostname x",
      "nmcli radio wifi off",
      "nmcli device disconnect x",
    ],
  },
  {
    program: "resolvectl",
    sandbox: "required",
    bare: true,
    subcommands: { status: { operands: "name*" }, statistics: {} },
    flags: "--no-pager",
    match: ["resolvectl status"],
    not_match: ["resolvectl dns eth0 1.1.1.1", "resolvectl query x", "resolvectl flush-caches"],
  },
  {
    program: "systemd-analyze",
    sandbox: "required",
    flags: "--no-pager --user --system",
    bare: true,
    subcommands: {
      "time blame": { flags: "--no-pager" },
      "critical-chain": { flags: "--no-pager", operands: "mask?" },
    },
    match: ["systemd-analyze", "systemd-analyze blame"],
    not_match: ["systemd-analyze verify x", "systemd-analyze -H x blame", "systemd-analyze log-level debug"],
  },
  {
    program: "lsb_release",
    sandbox: "required",
    flags: "-a --all -i --id -d --description -r --release -c --codename -s --short -v",
    match: ["lsb_release -a", "lsb_release -sc"],
    not_match: ["lsb_release x"],
  },
  {
    program: "ipcs lslocks",
    sandbox: "optional",
    flags: "-a -q -m -s -l -t -c -p -u -n -r -J --human",
    match: ["ipcs -m", "lslocks"],
    not_match: ["lslocks --sysroot x"],
  },
  {
    program: "chage",
    sandbox: "optional",
    flags: "-l --list -i --iso8601",
    operands: "name",
    needs: "-l --list",
    match: ["chage -l root"],
    not_match: ["chage root", "chage -E 0 root", "chage -l -R x root"],
  },
  {
    // To it "-l" means to lock.
    program: "passwd",
    sandbox: "optional",
    flags: "-S --status",
    operands: "name?",
    needs: "-S --status",
    match: ["passwd -S root"],
    not_match: ["passwd", "passwd -l root", "passwd -d root", "passwd -S -l root"],
  },
  {
    program: "atq runlevel",
    sandbox: "optional",
    match: ["atq", "runlevel"],
    not_match: ["atq -V x"],
  },
  {
    program: "tput",
    sandbox: "optional",
    operands: "cols|lines|colors",
    match: ["tput cols"],
    not_match: ["tput reset", "tput -S", "tput init"],
  },
];
