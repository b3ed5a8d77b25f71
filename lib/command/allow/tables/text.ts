import type { ProgramRule } from "../rule.ts";

/** True for a format of printf with texts and numbers only, which all printfs read alike. */
function isPlainFormat(format: string): boolean {
  return /^(?:[^%\\]|%[-+ #0]?\d{0,4}(?:\.\d{1,4})?[diouxXeEfgGcs%]|\\[\\nt"])*$/.test(format);
}

/** Awk takes an operand such as "x=1" for a variable to set, and does so before it reads the next file. */
function setsVariable(word: string, before = ""): boolean {
  return /^\w+=(?!=)/.test(word) && before !== "-v" && before !== "--assign";
}

/** Programs that turn text into other text. */
export const textRules: readonly ProgramRule[] = [
  {
    program: "sort",
    sandbox: "optional",
    flags: `-b --ignore-leading-blanks -d --dictionary-order -f --ignore-case -g --general-numeric-sort -i --ignore-nonprinting -M
      --month-sort -h --human-numeric-sort -n --numeric-sort -R --random-sort -r --reverse -V --version-sort -c --check -C -u
      --unique -s --stable -z --zero-terminated -m --merge -k=word --key=word -t=any --field-separator=any --sort=name --debug`,
    operands: "file*",
    match: ["sort -rn", "sort -k2,2n -t : a", "sort -u a b"],
    not_match: [
      "sort -o out a",
      "sort --output=x a",
      "sort -ro x a",
      "sort --compress-program=x a",
      "sort -T x a",
      "sort --files0-from=x",
      "sort -S 1 a",
      "sort --random-source=x",
    ],
  },
  {
    program: "uniq",
    sandbox: "optional",
    flags:
      "-c --count -d --repeated -D -u --unique -i --ignore-case -z --zero-terminated -f=int --skip-fields=int -s=int --skip-chars=int -w=int --check-chars=int",
    operands: "file?",
    match: ["uniq -c", "uniq a"],
    not_match: ["uniq a out", "uniq - out"],
  },
  {
    program: "cut",
    sandbox: "optional",
    flags:
      "-b=any --bytes=any -c=any --characters=any -d=any --delimiter=any -f=any --fields=any -s --only-delimited -n --complement --output-delimiter=any -z",
    operands: "file*",
    match: ["cut -d: -f1 /etc/passwd", "cut -c1-10"],
    not_match: ["cut -f1 /etc/shadow", "cut --x"],
  },
  {
    program: "tr",
    sandbox: "optional",
    flags: "-c -C --complement -d --delete -s --squeeze-repeats -t --truncate-set1",
    operands: "any any?",
    match: ["tr a-z A-Z", "tr -d '\\n'"],
    not_match: ["tr", "tr a b c"],
  },
  {
    program: "sed",
    sandbox: "optional",
    flags:
      "-n --quiet --silent -E -r --regexp-extended -s --separate -u --unbuffered -z --null-data -e=sed --expression=sed --posix --sandbox",
    operands: "sed file*",
    instead: "-e --expression",
    match: [
      "sed -n 1,20p a",
      "sed 's/a/b/g' a",
      "sed -n '/x/,/y/p' a",
      "sed -e 's/a/b/' -e '/x/d'",
      "sed '$d' a",
      "sed -n '/a/{p;q}' a",
      "sed 's|/a|/b|' a",
    ],
    not_match: [
      "sed -i s/a/b/ a",
      "sed 's/a/b/w out' a",
      "sed 's/a/id/e' a",
      "sed '1e id' a",
      "sed 'w out' a",
      "sed -f x a",
      "sed -n 'r /etc/shadow' a",
      "sed --in-place=.b s/a/b/ x",
      "sed 's/a/b/;e id' x",
      "sed '1!e' x",
      "sed p /etc/shadow",
    ],
  },
  {
    program: "awk gawk mawk nawk",
    sandbox: "optional",
    flags: "-F=any --field-separator=any -v=awk-variable --assign=awk-variable",
    operands: "awk file*",
    check: (words) =>
      words.some((word, at) => setsVariable(word, words[at - 1]) || word.startsWith("/inet"))
        ? "an operand sets a variable"
        : undefined,
    match: [
      "awk '{print $1}' a",
      "awk -F: '$3 > 100 {print $1, $3}' /etc/passwd",
      "awk 'NR>1 && NF {s += $2} END {print s/NR}'",
      "awk '/x/ {print}' a",
      "awk 'length($0) > 80' a",
      "awk -v n=5 'NR == n' a",
    ],
    not_match: [
      "awk 'BEGIN{system(\"id\")}'",
      "awk '{print > \"f\"}' a",
      "awk '{print | \"sh\"}' a",
      "awk '\"id\" | getline x' a",
      "awk -f x a",
      "awk -i inplace '{print}' a",
      "awk '{print >> \"f\"}' a",
      "awk '{print ENVIRON[\"X\"]}'",
      "awk '@load \"x\"'",
      "awk '{print $1 > $2}' a",
      "awk '{print x}' x=1 a",
      "awk -v ENVIRON=1 '{print}'",
      "awk '{while ((getline l < \"/etc/shadow\") > 0) print l}'",
    ],
  },
  {
    program: "jq",
    sandbox: "required",
    flags: `-r --raw-output -j --join-output -c --compact-output -n --null-input -e --exit-status -s --slurp -S --sort-keys -a
      --ascii-output -M --monochrome-output -C --color-output -R --raw-input --tab --indent=int --stream --seq -h`,
    operands: "jq file*",
    match: ["jq .a package.json", "jq -r '.[] | .name' a.json", "jq .", "jq '.env' a"],
    not_match: [
      "jq -f x a",
      "jq -n env",
      "jq -n '$ENV.HOME'",
      "jq 'import \"a\" as a; .' x",
      "jq --rawfile a /etc/shadow -n '$a'",
      "jq -L x . a",
      "jq . .env",
    ],
  },
  {
    program: "nl",
    sandbox: "optional",
    flags: "-b=any -h=any -f=any -n=name -w=int -s=any -v=int -i=int -l=int -p",
    operands: "file*",
    match: ["nl -ba a"],
    not_match: ["nl /etc/shadow"],
  },
  {
    program: "comm join paste",
    sandbox: "optional",
    flags:
      "-1 -2 -3 -i -s -z -d=any --delimiters=any -t=any -a=int -v=int -o=any -e=any -j=int --serial --check-order --nocheck-order --header --total --output-delimiter=any",
    operands: "file+",
    match: ["comm -12 a b", "paste -sd, a"],
    not_match: ["join a /etc/shadow", "comm"],
  },
  {
    program: "column",
    sandbox: "optional",
    flags:
      "-t --table -s=any --separator=any -o=any --output-separator=any -c=int -N=any -n=any -x -J --json -R=any -H=any -e -L",
    operands: "file*",
    match: ["column -t -s, a.csv"],
    not_match: ["column --x"],
  },
  {
    program: "fold fmt expand unexpand pr",
    sandbox: "optional",
    flags: "-w=int --width=int -s --spaces -b -t=any --tabs=any -a -i --initial -u -c -p=any",
    operands: "file*",
    match: ["fold -w 80 a", "fmt a"],
    not_match: ["fold /etc/shadow"],
  },
  {
    program: "od hexdump hd",
    sandbox: "optional",
    flags: "-A=name -t=name -j=size -N=size -v -c -x -b -d -o -a -C -n=size -s=size -w?=int",
    operands: "file*",
    match: ["od -c a", "hexdump -C -n 64 a"],
    not_match: ["hexdump -f x a", "od /dev/sda", "hexdump -e x a"],
  },
  {
    program: "xxd",
    sandbox: "optional",
    flags: "-b -c=int -g=int -l=size -s=any -p -u -i -e -E",
    operands: "file?",
    match: ["xxd -l 16 a", "xxd"],
    not_match: ["xxd -r a b", "xxd a b", "xxd -r -p"],
  },
  {
    program: "strings",
    sandbox: "optional",
    flags: "-a --all -n=int --bytes=int -t=name --radix=name -e=name --encoding=name -f -#",
    operands: "file+",
    check: (words) => (words.some((word) => word.startsWith("@")) ? "it takes options from a file" : undefined),
    match: ["strings -n 8 /bin/ls"],
    not_match: ["strings @x", "strings /dev/mem", "strings -T x a"],
  },
  {
    program: "base64 base32",
    sandbox: "optional",
    flags: "-d --decode -i --ignore-garbage -w=int --wrap=int",
    operands: "file?",
    match: ["base64 a", "base64 -d"],
    not_match: ["base64 /etc/shadow", "base64 ~/.ssh/id_rsa"],
  },
  {
    program: "echo",
    sandbox: "optional",
    flags: "-n -e -E",
    operands: "any*",
    check: (words) =>
      words.some((word) => /^-./.test(word) && !/^-[neE]+$/.test(word)) ? "it has an option" : undefined,
    match: ["echo hello world", "echo -n x", "echo 'rm -rf /'", "echo"],
    not_match: ["echo $(id)", "echo x > y", "echo --x"],
  },
  {
    program: "printf",
    sandbox: "optional",
    operands: "any any*",
    check: (words) => (isPlainFormat(words[0] ?? "") ? undefined : "its format is not on its list"),
    match: ["printf '%s\\n' a b", "printf hello"],
    not_match: ["printf -v x y", "printf '%q' a", "printf '%(%F)T' 1", "printf"],
  },
  {
    program: "seq",
    sandbox: "optional",
    flags: "-s=any --separator=any -w --equal-width -f=any --format=any",
    operands: "int int? int?",
    match: ["seq 1 10", "seq -w 5"],
    not_match: ["seq", "seq 1 9999999999"],
  },
  {
    program: "expr",
    sandbox: "optional",
    operands: "any+",
    match: ["expr 1 + 2"],
    not_match: ["expr"],
  },
  {
    program: "numfmt",
    sandbox: "optional",
    flags:
      "--to=name --from=name --suffix=any --padding=int --field=any --header?=int -d=any --round=name --format=any",
    operands: "any*",
    match: ["numfmt --to=iec 123456"],
    not_match: ["numfmt --x"],
  },
];
