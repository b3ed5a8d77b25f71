import type { ProgramRule } from "../rule.ts";

const GREP = `-i --ignore-case --no-ignore-case -v --invert-match -w --word-regexp -x --line-regexp -c --count -l --files-with-matches
  -L --files-without-match -n --line-number -H --with-filename -h --no-filename -o --only-matching -q --quiet --silent -s
  --no-messages -E --extended-regexp -F --fixed-strings -G --basic-regexp -P --perl-regexp -r --recursive -R
  --dereference-recursive -a --text -I -U --binary -z --null-data -Z --null -b --byte-offset -T --initial-tab -y
  --line-buffered -A=int --after-context=int -B=int --before-context=int -C=int --context=int -m=int --max-count=int
  -e=any --regexp=any --include=mask --exclude=mask --exclude-dir=mask --color?=when
  --binary-files=text|binary|without-match -d=skip|recurse --directories=skip|recurse --label=word -#`;

const RG = `-i --ignore-case -S --smart-case -s --case-sensitive -v --invert-match -w --word-regexp -x --line-regexp -c --count
  --count-matches -l --files-with-matches --files-without-match -n --line-number -N --no-line-number -H --with-filename
  -I --no-filename -o --only-matching -q --quiet --no-messages -F --fixed-strings -P --pcre2 -U --multiline
  --multiline-dotall -a --text -0 --null --null-data --column --heading --no-heading -p --pretty --vimgrep --json --stats
  --trim --hidden --no-hidden --no-ignore --no-ignore-vcs -u -uu -uuu --unrestricted -L --follow --no-config --files
  --type-list --one-file-system -A=int --after-context=int -B=int --before-context=int -C=int --context=int -m=int
  --max-count=int -M=int --max-columns=int -e=any --regexp=any -g=mask --glob=mask --iglob=mask -t=name --type=name
  -T=name --type-not=name -d=int --max-depth=int -j=int --threads=int --color=when --sort=name --sortr=name -r=any
  --replace=any --max-filesize=size --engine=name`;

const FIND = `-H -L -P -O0 -O1 -O2 -O3 -name=any -iname=any -path=any -ipath=any -wholename=any -iwholename=any -regex=any -iregex=any
  -regextype=name -lname=any -ilname=any -type=names -xtype=names -size=any -empty -mtime=any -atime=any -ctime=any -mmin=any
  -amin=any -cmin=any -newer=path -anewer=path -cnewer=path -newermt=time -newerat=time -newerct=time -user=name
  -group=name -uid=any -gid=any -nouser -nogroup -perm=any -links=any -inum=any -samefile=path -executable -readable
  -writable -maxdepth=int -mindepth=int -depth -d -xdev -mount -daystart -noleaf -follow -prune -print -print0
  -printf=any -ls -quit -not -a -and -o -or -true -false -fstype=name -used=any -warn -nowarn -ignore_readdir_race`;

/** Programs that look at files, their names, sizes and content. */
export const fileRules: readonly ProgramRule[] = [
  {
    program: "ls dir vdir",
    sandbox: "optional",
    flags: `-a --all -A --almost-all -l -h --human-readable -R --recursive -r --reverse -t -S -X -v -U -f -1 -d --directory -F
      --classify -i --inode -s --size -n --numeric-uid-gid -o -g -G --no-group -C -x -m -k -L -H -p -Q --quote-name -b -q -N -B
      --ignore-backups -c -u -Z --context --si --full-time --author --group-directories-first --dereference --literal
      --hide-control-chars --show-control-chars --escape -T=int -w=int --width=int -I=mask --ignore=mask --hide=mask
      --sort=name --time=name --time-style=any --format=name --color?=when --indicator-style=name --block-size=size
      --hyperlink?=when --quoting-style=name --file-type --zero`,
    operands: "path*",
    here: true,
    match: ["ls -la /var/log", "ls", "ls -d -- *", "ls ./*", "ls ./*.ts", "ls --color=never"],
    not_match: ["ls ~/.ssh", "ls --colo", "ls *", "ls -la $HOME", "ls --dired"],
  },
  {
    program: "cat",
    sandbox: "optional",
    flags:
      "-n --number -b --number-nonblank -s --squeeze-blank -A --show-all -E --show-ends -T --show-tabs -v --show-nonprinting -e -t -u",
    operands: "file*",
    match: ["cat /etc/hosts", "cat -n a b", "cat", "cat /proc/cpuinfo", "cat -", "cat /etc/*-release", "cat src/*"],
    not_match: [
      "cat /etc/shadow",
      "cat .env",
      "cat /dev/sda",
      "cat ~/.ssh/id_rsa",
      "cat /etc/s*",
      "cat /etc/*",
      "cat ~/.ssh/*",
      "cat /proc/*/environ",
      "cat /home/*/.ssh/id_rsa",
      "cat /proc/self/environ",
      "cat x > y",
    ],
  },
  {
    program: "tac rev",
    sandbox: "optional",
    flags: "-r -b -s=any",
    operands: "file*",
    match: ["tac /var/log/syslog", "rev a.txt"],
    not_match: ["tac ../../etc/shadow", "rev --x"],
  },
  {
    program: "head",
    sandbox: "optional",
    flags: "-n=size --lines=size -c=size --bytes=size -q --quiet --silent -v --verbose -z --zero-terminated -#",
    operands: "file*",
    match: ["head -n 20 a.log", "head -20 a", "head -c1K a"],
    not_match: ["head --line 5 a", "head -n x a", "head /dev/zero"],
  },
  {
    program: "tail",
    sandbox: "optional",
    flags: "-n=size --lines=size -c=size --bytes=size -q --quiet --silent -v --verbose -z --zero-terminated -#",
    operands: "file*",
    match: ["tail -n 50 /var/log/syslog", "tail -5 a", "tail -n +2 a"],
    not_match: ["tail -f a", "tail -F a", "tail --follow=name a", "tail -n5f a", "tail --retry a"],
  },
  {
    program: "wc",
    sandbox: "optional",
    flags: "-l --lines -w --words -c --bytes -m --chars -L --max-line-length",
    operands: "file*",
    match: ["wc -l a.txt", "wc"],
    not_match: ["wc --files0-from=x", "wc -c /etc/shadow"],
  },
  {
    program: "stat",
    sandbox: "optional",
    flags: "-L --dereference -f --file-system -t --terse -c=any --format=any --printf=any",
    operands: "path+",
    match: ["stat /etc/hosts", "stat -c %s a b"],
    not_match: ["stat", "stat --cached=never a", "stat ~/.ssh/id_rsa"],
  },
  {
    program: "file",
    sandbox: "optional",
    flags:
      "-b --brief -i --mime --mime-type --mime-encoding -L --dereference -h --no-dereference -k --keep-going -r --raw -N --no-pad -p",
    operands: "file+",
    match: ["file /bin/ls", "file -bi a"],
    not_match: ["file -C -m x", "file -f list", "file -z a.gz", "file -m x a"],
  },
  {
    program: "readlink realpath",
    sandbox: "optional",
    flags:
      "-f --canonicalize -e --canonicalize-existing -m --canonicalize-missing -n --no-newline -q --quiet -s --strip --no-symlinks -v -z --zero -L -P --relative-to=path --relative-base=path",
    operands: "path+",
    match: ["readlink -f /bin/sh", "realpath ."],
    not_match: ["readlink /proc/1/exe", "realpath"],
  },
  {
    program: "basename dirname",
    sandbox: "optional",
    flags: "-a --multiple -s=any --suffix=any -z --zero",
    operands: "any+",
    match: ["basename /a/b.txt .txt", "dirname /a/b"],
    not_match: ["basename", "dirname --x"],
  },
  {
    program: "du",
    sandbox: "optional",
    flags: `-a --all -h --human-readable -s --summarize -c --total -b --bytes -k -m -x --one-file-system -d=int --max-depth=int -L
      --dereference -P --no-dereference -H -D -S --separate-dirs -l --count-links -0 --null --apparent-size --si --inodes
      --exclude=mask --block-size=unit -B=unit -t=size --threshold=size --time?=name --time-style=any`,
    operands: "path*",
    here: true,
    match: ["du -sh /var/log", "du -ah --max-depth=1 .", "du -d1 /srv"],
    not_match: ["du --files0-from=x", "du -X x", "du -sh ~/.gnupg"],
  },
  {
    program: "df",
    sandbox: "optional",
    flags: `-h --human-readable -H --si -T --print-type -i --inodes -a --all -l --local -k -m -P --portability --total -t=name
      --type=name -x=name --exclude-type=name -B=unit --block-size=unit --output?=columns`,
    operands: "path*",
    match: ["df -h", "df -hT /", "df -BG", "df --output=source,pcent"],
    not_match: ["df --sync", "df --x"],
  },
  {
    program: "tree",
    sandbox: "optional",
    flags: `-a -d -f -i -l -x -L=int -P=mask -I=mask --ignore-case --matchdirs --prune --noreport -s -h --si --du -D -F -p -u -g -q -N
      -Q -v -t -c -U -r --dirsfirst --filesfirst --sort=name -n -C -A -S -J -X --inodes --device --gitignore --timefmt=any --filelimit=int`,
    operands: "path*",
    here: true,
    match: ["tree -L 2", "tree -a -I node_modules /srv"],
    not_match: ["tree -o out", "tree --fromfile x", "tree -R -H x -L 1"],
  },
  {
    program: "find",
    sandbox: "optional",
    style: "single",
    flags: FIND,
    operands: "path*",
    punctuation: "( ) ! ,",
    here: true,
    match: [
      "find . -name '*.ts'",
      "find /var/log -type f -size +10M -mtime -1",
      "find . \\( -name a -o -name b \\) -print0",
      "find /srv -maxdepth 2 ! -empty",
    ],
    not_match: [
      "find . -delete",
      "find . -exec rm {} +",
      "find . -ok x \\;",
      "find . -fprint x",
      "find . -fls x",
      "find -files0-from x",
      "find . -name *.ts",
      "find . -execdir x ;",
    ],
  },
  {
    program: "grep egrep fgrep",
    sandbox: "optional",
    flags: GREP,
    operands: "any file*",
    instead: "-e --regexp",
    recursive: "-r --recursive -R --dereference-recursive",
    match: [
      "grep -n foo a.txt",
      "grep -rn TODO .",
      "grep -r foo",
      "grep -e a -e b c",
      "grep -ri 'rm -rf /' /var/log",
      "grep -A3 x y",
    ],
    not_match: [
      "grep -f patterns a",
      "grep root /etc/shadow",
      "grep -r password /",
      "grep --colo=always x y",
      "grep foo* a",
      "grep -r x ~",
    ],
  },
  {
    program: "rg",
    sandbox: "required",
    flags: RG,
    operands: "any file*",
    instead: "-e --regexp --files --type-list",
    recursive: "always",
    match: ["rg foo", "rg -n --type ts foo src", "rg -uu -g '*.ts' x", "rg --files"],
    not_match: [
      "rg --pre cat foo",
      "rg --pre=./x foo",
      "rg -z foo",
      "rg --search-zip foo",
      "rg -f x",
      "rg --hostname-bin x y",
      "rg x /",
    ],
  },
  {
    program: "fd fdfind",
    sandbox: "required",
    flags: `-H --hidden -I --no-ignore -u -s --case-sensitive -i --ignore-case -g --glob -F --fixed-strings -a --absolute-path -l
      --list-details -L --follow -p --full-path -0 --print0 -d=int --max-depth=int --min-depth=int -t=name --type=name -e=name
      --extension=name -S=any --size=any --changed-within=any --changed-before=any -E=mask --exclude=mask -c=when --color=when -1 -q`,
    operands: "any? path*",
    match: ["fd foo", "fd -e ts . src"],
    not_match: ["fd -x rm", "fd foo -X rm", "fd --exec rm"],
  },
  {
    program: "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum",
    sandbox: "optional",
    flags: "-b --binary -t --text --tag -z --zero -a=name --algorithm=name -l=int --length=int -r -s --sysv",
    operands: "file*",
    match: ["sha256sum a.iso", "md5sum a b"],
    not_match: ["sha256sum -c sums", "md5sum /etc/shadow", "sha256sum /dev/zero"],
  },
  {
    program: "cmp",
    sandbox: "optional",
    flags: "-b --print-bytes -l --verbose -s --quiet --silent -n=size --bytes=size -i=any --ignore-initial=any",
    operands: "file{2}",
    match: ["cmp a b", "cmp -s a b"],
    not_match: ["cmp a /etc/shadow", "cmp a b c"],
  },
  {
    program: "diff",
    sandbox: "optional",
    flags: `-u -U=int --unified?=int -c -C=int --context?=int -y --side-by-side -W=int --width=int -q --brief -s
      --report-identical-files -r --recursive -N --new-file -a --text -b -w -B -i -E -Z -t -T -e -n -p -d --minimal -x=mask
      --exclude=mask -I=any --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --strip-trailing-cr
      --color?=when --normal --suppress-common-lines --left-column --label=any -L=any --no-dereference`,
    operands: "file{2}",
    recursive: "-r --recursive",
    match: ["diff -u a b", "diff -rq x y"],
    not_match: ["diff -l a b", "diff --paginate a b", "diff --to-file=x a", "diff a /etc/shadow", "diff -X x a b"],
  },
  {
    program: "tar",
    sandbox: "required",
    flags: "-t --list -z --gzip -j --bzip2 -J --xz -v --verbose -f=file --file=file --zstd --numeric-owner --full-time",
    operands: "any*",
    bundle: /^[tzjJv]*f$/,
    needs: "-t --list",
    check: (words) =>
      words.some((word) => /:/.test(word) || word.startsWith("!"))
        ? "a name with a colon is another machine"
        : undefined,
    match: ["tar -tzf a.tgz", "tar -tvf a.tar", "tar --list --file=a.tar", "tar tzf a.tgz"],
    not_match: [
      "tar -xf a.tar",
      "tar -cf a.tar b",
      "tar -tf host:a",
      "tar -tf a --to-command=x",
      "tar -tf a -I x",
      "tar -tf a --checkpoint-action=exec=x",
      "tar xf a",
      "tar tfz a.tgz",
      "tar zf a.tgz",
      "tar tf host:a",
      "tar tf /etc/shadow",
    ],
  },
  {
    program: "unzip",
    sandbox: "optional",
    flags: "-l -v -Z -1 -q",
    operands: "file any*",
    needs: "-l -v -Z",
    match: ["unzip -l a.zip"],
    not_match: ["unzip a.zip", "unzip -p a.zip", "unzip -o -l a.zip"],
  },
  {
    program: "zcat bzcat xzcat zstdcat",
    sandbox: "required",
    flags: "",
    operands: "file+",
    match: ["zcat /var/log/syslog.2.gz"],
    not_match: ["zcat -f x", "xzcat -k x"],
  },
];
