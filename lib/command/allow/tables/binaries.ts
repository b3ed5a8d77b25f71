import type { ProgramRule } from "../rule.ts";

/** GNU's programs for object files take options from a file that is named so. */
function takesOptionsFromFile(words: readonly string[]): string | undefined {
  return words.some((word) => word.startsWith("@")) ? "it takes options from a file" : undefined;
}

/** Of some of these programs the last word about what to do wins, so that "-t -d" unpacks. */
function unpacksIntoFile(words: readonly string[]): string | undefined {
  const unpacks = words.some((word) => /^-[a-z\d]*d/.test(word) || /^--(?:de|un)compress$/.test(word));
  const prints = words.some((word) => /^-[a-z\d]*c/.test(word) || /^--(?:to-)?stdout$/.test(word));
  return unpacks && !prints ? "it unpacks into a file" : undefined;
}

/** Programs that say what is in files that are no text: packed ones, programs and libraries, and what a file system says of a file. */
export const binaryRules: readonly ProgramRule[] = [
  {
    program: "gzip bzip2 xz zstd",
    sandbox: "optional",
    flags:
      "-d --decompress --uncompress -c --stdout --to-stdout -l --list -t --test -k --keep -q --quiet -v --verbose -#",
    operands: "file*",
    needs: "-c --stdout --to-stdout -l --list -t --test",
    check: unpacksIntoFile,
    match: ["gzip -dc a.gz", "gzip -l a.gz", "xz --list a.xz", "zstd -d -c a.zst", "bzip2 -t a.bz2"],
    not_match: ["gzip a", "gzip -d a.gz", "xz -t -d a.xz", "zstd -l -d a.zst", "zstd -c -o b a", "gzip -c .env"],
  },
  {
    program: "gunzip bunzip2 unxz unzstd",
    sandbox: "optional",
    flags: "-c --stdout --to-stdout -k -q -v",
    operands: "file*",
    needs: "-c --stdout --to-stdout",
    match: ["gunzip -c a.gz"],
    not_match: ["gunzip a.gz", "gunzip -t -f a.gz"],
  },
  {
    program: "zipinfo",
    sandbox: "optional",
    flags: "-1 -2 -s -m -l -v -h -t -z -T",
    operands: "file any*",
    match: ["zipinfo -1 a.zip"],
    not_match: ["zipinfo /etc/shadow"],
  },
  {
    program: "nm",
    sandbox: "required",
    flags:
      "-a -A -C --demangle -D --dynamic -g --extern-only -n --numeric-sort -p -P -r -S --print-size -u --undefined-only -U --defined-only --size-sort -t=name",
    operands: "file+",
    check: takesOptionsFromFile,
    match: ["nm -D /bin/ls", "nm -C a.out"],
    not_match: ["nm --plugin x.so a", "nm @x", "nm"],
  },
  {
    program: "objdump",
    sandbox: "required",
    flags:
      "-a -f --file-headers -h --section-headers --headers -p --private-headers -r -R -s -t --syms -T --dynamic-syms -x --all-headers -d --disassemble -C -w --wide -j=name --section=name -M=word --no-show-raw-insn",
    operands: "file+",
    check: takesOptionsFromFile,
    match: ["objdump -f a.out", "objdump -d -M intel /bin/ls"],
    not_match: ["objdump @x", "objdump --disassembler-options a", "objdump -W a"],
  },
  {
    program: "readelf",
    sandbox: "required",
    flags:
      "-a --all -h --file-header -l --program-headers --segments -S --section-headers --sections -s --syms --symbols --dyn-syms -e --headers -n --notes -r --relocs -d --dynamic -V --version-info -A -W --wide -p=name --string-dump=name -x=name",
    operands: "file+",
    check: takesOptionsFromFile,
    match: ["readelf -h /bin/ls", "readelf -Wd a.so"],
    not_match: ["readelf @x", "readelf -wK a"],
  },
  {
    program: "size",
    sandbox: "required",
    flags: "-A -B -d -o -x -t --totals",
    operands: "file+",
    check: takesOptionsFromFile,
    match: ["size a.out"],
    not_match: ["size @x", "size --target=x a"],
  },
  {
    program: "xmllint",
    sandbox: "required",
    flags: "--format --noout --nonet --recover --nowarning --noblanks --pretty=int --xpath=any",
    operands: "file*",
    match: ["xmllint --format a.xml", "xmllint --xpath //a a.xml"],
    not_match: ["xmllint --shell a.xml", "xmllint --output b a", "xmllint --noent a.xml", "xmllint --xinclude a.xml"],
  },
  {
    program: "iconv",
    sandbox: "optional",
    flags: "-f=name --from-code=name -t=name --to-code=name -c -s -l --list",
    operands: "file*",
    match: ["iconv -f latin1 -t utf-8 a.txt"],
    not_match: ["iconv -o b -f a a", "iconv -f ../x a"],
  },
  {
    program: "factor",
    sandbox: "optional",
    operands: "int+",
    match: ["factor 12"],
    not_match: ["factor", "factor x"],
  },
  {
    program: "getfacl",
    sandbox: "optional",
    flags: "-a --access -d --default -c --omit-header -e -E -t --tabular -n --numeric -p --absolute-names",
    operands: "path+",
    match: ["getfacl a"],
    not_match: ["getfacl -R /", "getfacl /root/.ssh/id_rsa"],
  },
  {
    program: "lsattr",
    sandbox: "optional",
    flags: "-a -d -l -p -v",
    operands: "path*",
    here: true,
    match: ["lsattr -d a"],
    not_match: ["lsattr -R /"],
  },
  {
    program: "namei getcap",
    sandbox: "optional",
    flags: "-l --long -m --modes -o --owners -n -v -x --mountpoints",
    operands: "path+",
    match: ["namei -l /etc/passwd", "getcap /usr/bin/ping"],
    not_match: ["getcap -r /", "namei"],
  },
];
