import type { ProgramRule } from "../rule.ts";

const PS = `-e -A -a -d -f -F -l -j -y -w -ww -H -L -T -M -Z -N --forest --no-headers --no-heading --headers -p=any --pid=any --ppid=any -q=any -C=any
  -u=names --user=names -U=names -g=names -G=names -t=any -s=any -o=columns -O=columns --format=columns --sort=columns -k=columns
  --cols=int --columns=int --width=int --deselect`;

const SYSTEMCTL = `--no-pager -l --full -a --all -q --quiet --no-legend --plain --failed --user --system --value -t=names --type=names --state=names
  -p=names --property=names -n=int --lines=int -o=name --output=name -r --recursive --reverse --after --before --no-ask-password -P=names`;

/** Without a dash "e" shows the environment of each process; behind "o" it is part of a name. */
function showsEnvironment(words: readonly string[]): string | undefined {
  const shows = words.some((word, at) => {
    if (word.startsWith("-") || !/e/i.test(word)) return false;
    return !/^(?:[a-zA-Z]*[oOk]|-[a-zA-Z]*[pqCuUgGtsoOk]|--[a-z]+)$/.test(words[at - 1] ?? "");
  });
  return shows ? "it may show the environment of processes" : undefined;
}

/** Programs that say how the machine is: processes, memory, disks, services, logs, users. */
export const systemRules: readonly ProgramRule[] = [
  {
    program: "ps",
    sandbox: "optional",
    flags: PS,
    operands: "bsd* columns?",
    check: showsEnvironment,
    match: ["ps aux", "ps -ef", "ps -eo pid,cmd --sort=-rss", "ps -p 1", "ps -C nginx", "ps axo pid,user,cmd"],
    not_match: ["ps auxe", "ps eww", "ps axe", "ps -o environ", "ps e -p 1", "ps ax eww", "ps -u root e"],
  },
  {
    program: "pgrep",
    sandbox: "optional",
    flags:
      "-a --list-full -l --list-name -f --full -c --count -n --newest -o --oldest -x --exact -i --ignore-case -v --inverse -u=names -U=names -P=any -d=any -g=any -s=any -t=any",
    operands: "any*",
    match: ["pgrep -af nginx", "pgrep -u root sshd"],
    not_match: ["pgrep -F pidfile", "pgrep --signal 9 x"],
  },
  {
    program: "pidof",
    sandbox: "optional",
    flags: "-s -x -q -c",
    operands: "name+",
    match: ["pidof sshd"],
    not_match: ["pidof"],
  },
  {
    program: "pstree",
    sandbox: "optional",
    flags: "-a -p -c -u -l -n -h -g -s -t -T -A -U -C=name",
    operands: "name?",
    match: ["pstree -p", "pstree -ap 1"],
    not_match: ["pstree --x"],
  },
  {
    program: "top",
    sandbox: "optional",
    flags: "-b -n=count -d=seconds -o=word -p=any -u=name -c -H -i -w?=int -1 -E=name",
    needs: "-b",
    check: (words) =>
      words.some((word) => /^-b?n/.test(word) || /^-[a-zA-Z]*n/.test(word)) ? undefined : "it does not end by itself",
    match: ["top -b -n 1", "top -bn1 -o %MEM"],
    not_match: ["top", "top -b", "top -n 1"],
  },
  {
    program: "free",
    sandbox: "optional",
    flags: "-h --human -b -k -m -g -w --wide -t --total -l --lohi --si --mega --giga --kilo --mebi --gibi -v -L",
    match: ["free -h", "free"],
    not_match: ["free -s 1", "free -c 3 -s 1"],
  },
  {
    program: "uptime",
    sandbox: "optional",
    flags: "-p --pretty -s --since",
    match: ["uptime", "uptime -p"],
    not_match: ["uptime x"],
  },
  {
    program: "vmstat iostat mpstat",
    sandbox: "optional",
    flags: "-a -d -D -m -n -s -t -w -S=name -x -k -h -y -z -c -N -P=name -u",
    operands: "count{2}",
    check: (words) =>
      words.filter((word) => /^\d+$/.test(word)).length === 1 ? "it does not end by itself" : undefined,
    match: ["vmstat", "vmstat 1 3", "iostat -x 1 2"],
    not_match: ["vmstat 1", "vmstat 1 999999"],
  },
  {
    program: "uname arch nproc",
    sandbox: "optional",
    flags:
      "-a --all -s --kernel-name -n --nodename -r --kernel-release -v --kernel-version -m --machine -p --processor -i -o --operating-system --ignore=int",
    match: ["uname -a", "nproc --all", "arch"],
    not_match: ["uname x"],
  },
  {
    program: "date",
    sandbox: "optional",
    flags:
      "-u --utc --universal -R --rfc-email -I?=name --iso-8601?=name --rfc-3339=name -d=time --date=time -r=path --reference=path",
    operands: "+format?",
    match: ["date", "date -u +%F", "date -d yesterday", "date --iso-8601=seconds"],
    not_match: ["date -s 2020-01-01", "date 010100002020", "date --set=x", "date -f x", "date --se=x"],
  },
  {
    program: "cal ncal",
    sandbox: "optional",
    flags: "-1 -3 -y -j -m -s -b -h",
    operands: "name{3}",
    match: ["cal", "cal 2026"],
    not_match: ["cal --x"],
  },
  {
    program: "hostname",
    sandbox: "optional",
    flags: "-f --fqdn -s --short -d --domain -i --ip-address -I --all-ip-addresses -A",
    match: ["hostname", "hostname -f"],
    not_match: ["hostname evil", "hostname -F x", "hostname -b x"],
  },
  {
    program: "id groups",
    sandbox: "optional",
    flags: "-u --user -g --group -G --groups -n --name -r --real -z --zero",
    operands: "name*",
    match: ["id", "id -un", "groups root"],
    not_match: ["id --x"],
  },
  {
    program: "whoami logname users tty",
    sandbox: "optional",
    flags: "-s",
    match: ["whoami", "tty"],
    not_match: ["whoami x"],
  },
  {
    program: "who w",
    sandbox: "optional",
    flags: "-a -b -d -H -l -q -r -s -t -T -u -w -m -h -f -i -o",
    match: ["who -b", "w"],
    not_match: ["who /etc/shadow"],
  },
  {
    program: "last lastb lastlog",
    sandbox: "optional",
    flags: "-n=int -a -d -F -i -w -x -R -u=name -t=time -s=time -b=int -#",
    operands: "name*",
    match: ["last -n 10", "last reboot", "lastlog -u root"],
    not_match: ["last -f x", "lastlog -C -u x", "lastlog -S"],
  },
  { program: "pwd", sandbox: "optional", flags: "-L -P", match: ["pwd"], not_match: ["pwd x"] },
  { program: "true false", sandbox: "optional", match: ["true", "false"], not_match: ["true $(id)"] },
  {
    program: "sleep",
    sandbox: "optional",
    operands: "seconds",
    match: ["sleep 2", "sleep 0.5"],
    not_match: ["sleep 9999", "sleep infinity"],
  },
  {
    program: "printenv",
    sandbox: "optional",
    operands: "PATH|HOME|LANG|LC_ALL|SHELL|USER|PWD|TERM|TZ",
    match: ["printenv PATH"],
    not_match: ["printenv", "printenv AWS_SECRET_ACCESS_KEY"],
  },
  {
    program: "which",
    sandbox: "optional",
    flags: "-a",
    operands: "name+",
    match: ["which -a python3", "which ls"],
    not_match: ["which", "which /root/x"],
  },
  {
    program: "whereis",
    sandbox: "optional",
    flags: "-b -m -s",
    operands: "name+",
    match: ["whereis ls"],
    not_match: ["whereis -B / -f ls"],
  },
  {
    program: "man",
    sandbox: "required",
    flags: "-k -f -w",
    operands: "name+",
    match: ["man ls", "man 5 passwd", "man -k socket"],
    not_match: ["man -P x ls", "man ./x", "man --pager=x ls", "man -H ls", "man -C x ls", "man -M x ls"],
  },
  {
    program: "apropos whatis",
    sandbox: "required",
    flags: "-s=any -e -w -r",
    operands: "name+",
    match: ["apropos socket"],
    not_match: ["whatis -M x ls"],
  },
  {
    program: "lscpu lsmem lsns lsipc",
    sandbox: "optional",
    flags: "-J --json -e?=columns -p?=columns -a --all -b --bytes -n -o=columns --output=columns -l -y",
    match: ["lscpu", "lscpu -J"],
    not_match: ["lscpu -s /x", "lscpu --sysroot=/x"],
  },
  {
    program: "lsblk",
    sandbox: "optional",
    flags:
      "-a --all -b --bytes -d --nodeps -f --fs -i -J --json -l --list -m --perms -n --noheadings -o=columns --output=columns -O -p --paths -r --raw -s -S -t --topology -T?=name -e=any -I=any -x=name",
    operands: "path*",
    match: ["lsblk", "lsblk -f", "lsblk -o NAME,SIZE /dev/sda"],
    not_match: ["lsblk --sysroot x"],
  },
  {
    program: "blkid",
    sandbox: "optional",
    flags: "-o=name -s=name -L=name -U=name -k -l",
    operands: "path*",
    match: ["blkid", "blkid -o list"],
    not_match: ["blkid -c x", "blkid -g", "blkid -w x"],
  },
  {
    program: "findmnt",
    sandbox: "optional",
    flags: "-l -r -n -o=columns -t=names -J --json -D --df -a -R -u -A --real -T=path -S=any -M=path",
    operands: "path*",
    match: ["findmnt", "findmnt -t ext4"],
    not_match: ["findmnt -p", "findmnt -F x", "findmnt --poll"],
  },
  {
    program: "mount",
    sandbox: "optional",
    flags: "-l -t=names -v",
    match: ["mount", "mount -l -t ext4"],
    not_match: ["mount /dev/sda1 /mnt", "mount -a", "mount -o remount,rw /", "mount --bind a b"],
  },
  {
    program: "swapon",
    sandbox: "optional",
    flags: "-s --summary --show?=columns --bytes --noheadings --raw",
    needs: "-s --summary --show",
    match: ["swapon --show", "swapon -s"],
    not_match: ["swapon -a", "swapon /x", "swapon"],
  },
  {
    program: "lspci lsusb lsmod lsscsi",
    sandbox: "optional",
    flags: "-v -vv -vvv -n -nn -k -t -m -mm -D -s=any -d=any",
    match: ["lspci -nnk", "lsusb -t", "lsmod"],
    not_match: ["lspci -q", "lspci -F x", "lspci -p x", "lspci -A x", "lsusb -D x"],
  },
  {
    program: "modinfo",
    sandbox: "optional",
    flags: "-a -d -l -p -n -F=name",
    operands: "name+",
    match: ["modinfo ext4"],
    not_match: ["modinfo -b /x y"],
  },
  {
    program: "dmesg",
    sandbox: "optional",
    flags:
      "-T --ctime -H --human -k --kernel -l=names --level=names -f=names -x --decode -r --raw -t --notime -d -e -J -L?=when --color?=when -P --nopager --since=time --until=time -u -S",
    match: ["dmesg -T", "dmesg -l err,warn"],
    not_match: ["dmesg -C", "dmesg -c", "dmesg -w", "dmesg -n 1", "dmesg -D", "dmesg -F x"],
  },
  {
    program: "sysctl",
    sandbox: "optional",
    flags: "-a --all -n --values -N --names -e --ignore -r=any --pattern=any -b",
    operands: "sysctl*",
    match: ["sysctl -a", "sysctl kernel.hostname", "sysctl -n vm.swappiness"],
    not_match: ["sysctl -w kernel.x=1", "sysctl kernel.x=1", "sysctl -p", "sysctl --system", "sysctl -f x"],
  },
  {
    program: "getent",
    sandbox: "optional",
    operands: "passwd|group|hosts|services|protocols|networks|ahosts|ahostsv4|ahostsv6|ethers|rpc any*",
    match: ["getent passwd root", "getent group"],
    not_match: ["getent shadow", "getent gshadow x", "getent"],
  },
  {
    program: "getconf",
    sandbox: "optional",
    flags: "-a",
    operands: "name? path?",
    match: ["getconf PAGE_SIZE", "getconf -a"],
    not_match: ["getconf -v x y"],
  },
  {
    program: "locale",
    sandbox: "optional",
    flags: "-a -m",
    operands: "name*",
    match: ["locale", "locale -a"],
    not_match: ["locale --x"],
  },
  {
    program: "lsof",
    sandbox: "optional",
    flags: "-i?=any -n -P -t -l -a -U -R -V -p=any -u=names -c=name -d=any -g?=any -s?=any",
    operands: "path*",
    check: (words) => (words.some((word) => word.startsWith("+")) ? "it has an option" : undefined),
    match: ["lsof -i :8080", "lsof -nP -iTCP", "lsof -p 1"],
    not_match: ["lsof -k x", "lsof -r 1", "lsof -D b", "lsof +r1"],
  },
  {
    program: "crontab",
    sandbox: "optional",
    flags: "-l",
    needs: "-l",
    match: ["crontab -l"],
    not_match: ["crontab -r", "crontab -e", "crontab x", "crontab -l -u root"],
  },
  {
    program: "test [",
    sandbox: "optional",
    style: "single",
    flags:
      "-e=path -f=path -d=path -r=path -w=path -x=path -s=path -L=path -h=path -S=path -p=path -b=path -c=path -z=any -n=any -a -o -eq=int -ne=int -lt=int -le=int -gt=int -ge=int -nt=path -ot=path -ef=path",
    operands: "any*",
    punctuation: "! ( ) ]",
    match: ["test -f /etc/hosts", "[ -d /srv ]", "[ a = b ]"],
    not_match: ["test -v 'a[$(id)]'", "[ -v x ]", "test -t 1"],
  },
  {
    program: "systemctl",
    sandbox: "required",
    flags: SYSTEMCTL,
    bare: true,
    subcommands: {
      "status show cat list-units list-unit-files list-timers list-sockets list-dependencies list-jobs is-active is-enabled is-failed list-machines list-automounts list-paths":
        { flags: SYSTEMCTL, operands: "mask*" },
      "get-default is-system-running --version": { flags: SYSTEMCTL },
    },
    match: [
      "systemctl status nginx",
      "systemctl list-units --type=service --state=failed",
      "systemctl --failed --no-pager",
      "systemctl is-active ssh",
      "systemctl --user status x",
      "systemctl cat ssh.service",
    ],
    not_match: [
      "systemctl restart nginx",
      "systemctl -H host status x",
      "systemctl --host=x status",
      "systemctl -M x status",
      "systemctl --root=/x status",
      "systemctl show-environment",
      "systemctl edit x",
      "systemctl enable x",
      "systemctl daemon-reload",
      "systemctl status --kill-who=x y",
    ],
  },
  {
    program: "journalctl",
    sandbox: "required",
    flags: `-u=mask --unit=mask --user-unit=mask -n=int --lines=int -b?=any --boot?=any -k --dmesg -p=names --priority=names -S=time --since=time -U=time
      --until=time -o=name --output=name -r --reverse -x --catalog -e --pager-end -a --all -q --quiet --no-pager --no-full -l --full --utc
      --no-hostname -t=mask --identifier=mask -g=any --grep=any --case-sensitive?=any --list-boots --disk-usage --header -F=name --field=name
      -N --fields --system --user --facility=names --no-tail -m --merge -c=any --cursor=any --after-cursor=any --output-fields=names --verify`,
    operands: "field*",
    match: [
      "journalctl -u nginx -n 100 --no-pager",
      "journalctl -b -p err",
      "journalctl --since '1 hour ago'",
      "journalctl _PID=1",
      "journalctl --disk-usage",
      "journalctl -xe",
    ],
    not_match: [
      "journalctl -f",
      "journalctl -fu nginx",
      "journalctl --follow",
      "journalctl --vacuum-size=1M",
      "journalctl --rotate",
      "journalctl -D /x",
      "journalctl --file=x",
      "journalctl --root=/x",
      "journalctl -M x",
      "journalctl --cursor-file=x",
      "journalctl --flush",
      "journalctl --setup-keys",
    ],
  },
  {
    program: "loginctl hostnamectl timedatectl localectl",
    sandbox: "required",
    flags: "--no-pager -a --all -l --full -p=names --property=names --value -j --no-legend",
    bare: true,
    subcommands: {
      "status show list-sessions list-users session-status user-status show-session show-user list-seats timesync-status list-timezones list-locales":
        { flags: "--no-pager -p=names --property=names --value", operands: "name*" },
    },
    match: ["timedatectl", "hostnamectl status", "loginctl list-sessions"],
    not_match: [
      "timedatectl set-time x",
      "hostnamectl set-hostname x",
      "hostnamectl hostname x",
      "loginctl terminate-user x",
      "localectl set-locale x",
      "hostnamectl -H x status",
    ],
  },
];
