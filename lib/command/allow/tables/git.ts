import type { ProgramRule, Usage } from "../rule.ts";

/** Settings that would have git run a program: none of the repository's own counts. */
const SAFE_SETTINGS = [
  "--no-pager",
  "--no-optional-locks",
  ..."core.fsmonitor=false core.hooksPath=/dev/null core.pager=cat core.sshCommand=false diff.external= gpg.program=false credential.helper= protocol.allow=never log.showSignature=false status.submoduleSummary=false"
    .split(" ")
    .flatMap((setting) => ["-c", setting]),
];

const FORMAT =
  "--oneline --format=format --pretty?=pretty --abbrev-commit --no-abbrev-commit --abbrev?=int --date=any --no-color --color?=when --relative-date -z --decorate?=name --no-decorate";

const DIFF = `-p --patch -u -s --no-patch -U=int --unified=int --raw --stat?=any --numstat --shortstat --dirstat?=any --summary --name-only
  --name-status --compact-summary --minimal --patience --histogram --color-words?=any --word-diff?=name -w --ignore-all-space -b
  --ignore-space-change --ignore-blank-lines --ignore-space-at-eol -M?=any --find-renames?=any -C?=any -D -R --no-renames
  --diff-filter=name -S=any -G=any --pickaxe-regex --pickaxe-all --check --full-index --binary -a --text -W --function-context
  --exit-code --quiet --relative?=path --no-prefix --src-prefix=any --dst-prefix=any --no-ext-diff --no-textconv --submodule?=short|log`;

const REVISIONS = `--all --branches?=any --tags?=any --remotes?=any -n=int -# --max-count=int --skip=int --since=time --after=time --until=time
  --before=time --author=any --committer=any --grep=any -i -E -F -P --all-match --invert-grep --merges --no-merges --first-parent
  --reverse --graph --left-right --cherry-pick --cherry-mark --cherry --topo-order --date-order --author-date-order --follow
  --full-history --simplify-merges --ancestry-path --no-walk --parents --children --boundary -g --walk-reflogs -L=any --source
  -c --cc -m --left-only --right-only --count --objects --no-notes --notes?=ref`;

const LISTS =
  "-a --all -r --remotes -v -vv --verbose -q --sort=any --contains?=ref --no-contains?=ref --merged?=ref --no-merged?=ref --points-at=ref --format=format --column?=name --no-column --color?=when --no-color --abbrev=int --ignore-case -i";

const EXTRA = ["--no-ext-diff", "--no-textconv"];

/** Whether the files of a submodule have changed is a question that git asks in the submodule, by settings of its own. */
const OUTSIDE_SUBMODULES = "--ignore-submodules=dirty";

const reads = (flags: string, operands = "ref*"): Usage => ({ flags, operands });
const shows = (flags: string): Usage => ({ flags, operands: "ref*", extra: EXTRA });

/**
 * What git only shows. A repository names programs in its settings, so the sandbox is required, the settings known to run one
 * are switched off, and what is left is checked where it runs (profile git_readonly).
 */
export const gitRules: readonly ProgramRule[] = [
  {
    program: "git",
    sandbox: "required",
    profile: "git_readonly",
    forced: SAFE_SETTINGS,
    flags: "--no-pager --no-optional-locks --literal-pathspecs",
    subcommands: {
      status: {
        flags:
          "-s --short -b --branch --porcelain?=name --long -v --show-stash --ahead-behind --no-ahead-behind -u?=name --untracked-files?=name --ignored?=name -z --column?=name --no-renames",
        operands: "ref*",
        extra: [OUTSIDE_SUBMODULES],
      },
      log: shows(`${FORMAT} ${DIFF} ${REVISIONS}`),
      show: shows(`${FORMAT} ${DIFF} ${REVISIONS}`),
      whatchanged: shows(`${FORMAT} ${DIFF} ${REVISIONS}`),
      diff: {
        flags: `${DIFF} --cached --staged --merge-base --no-color --color?=when -z --abbrev?=int`,
        operands: "ref*",
        extra: [...EXTRA, OUTSIDE_SUBMODULES],
      },
      "diff-tree diff-index": {
        flags: `${DIFF} -r -t --root --cached --no-commit-id -z -c --cc -m`,
        operands: "ref*",
        extra: [...EXTRA, OUTSIDE_SUBMODULES],
      },
      shortlog: reads(
        `-s --summary -n --numbered -e --email --group=name -c ${"--all --since=time --until=time --no-merges --after=time --before=time"}`,
      ),
      blame: {
        flags:
          "-L=any -l -t -s -e -w -M?=any -C?=any -p --porcelain --line-porcelain -f -n --since=time --date=any --root --show-email --abbrev=int",
        operands: "ref+",
        extra: ["--no-textconv"],
      },
      "rev-parse": reads(
        "--show-toplevel --abbrev-ref?=name --short?=int --verify -q --quiet --git-dir --is-inside-work-tree --is-bare-repository --show-prefix --show-cdup --symbolic-full-name --all --branches?=any --tags?=any --remotes?=any --git-common-dir --absolute-git-dir",
      ),
      "rev-list": reads(`${REVISIONS} --oneline --abbrev-commit --pretty?=pretty --format=format --timestamp`),
      describe: reads(
        "--all --tags --contains --abbrev=int --long --always --exact-match --first-parent --match=any --exclude=any --candidates=int",
      ),
      "ls-files": reads(
        "-c --cached -d --deleted -m --modified -o --others -i --ignored -s --stage -u --unmerged -t -v -z --exclude-standard -x=any --exclude=any --full-name --directory --error-unmatch --deduplicate --eol",
      ),
      "ls-tree": reads(
        "-r -t -d -l --long --name-only --name-status --full-name --full-tree -z --object-only --abbrev?=int",
      ),
      "cat-file": { flags: "-t -s -p -e", operands: "ref{2}" },
      cherry: reads("-v --verbose --abbrev?=int"),
      "merge-base": reads("-a --all --octopus --is-ancestor --fork-point --independent"),
      "name-rev show-ref for-each-ref show-branch": reads(
        "--tags --heads --branches -d --dereference -s --hash?=int --abbrev?=int --verify -q --quiet --head --sort=any --format=format --count=int --points-at=ref --merged?=ref --no-merged?=ref --contains?=ref --name-only --all -a -r --refs=any",
      ),
      "count-objects": { flags: "-v --verbose -H --human-readable" },
      grep: {
        flags:
          "-n --line-number -i --ignore-case -w --word-regexp -v --invert-match -l --name-only --files-with-matches -L -c --count -E -G -P -F -h -H -p --show-function -W -q -o --only-matching -A=int -B=int -C=int -e=any --and --or --not --all-match --cached --untracked -I -a --heading --break --max-depth=int -m=int --no-color --color?=when --column -z",
        operands: "any? ref*",
        extra: ["--no-textconv"],
      },
      branch: { flags: `${LISTS} -l --list --show-current`, operands: "any*", check: onlyLists },
      tag: { flags: `${LISTS} -l --list -n?=int -#`, operands: "any*", check: onlyLists },
      remote: {
        flags: "-v --verbose",
        bare: true,
        subcommands: { "get-url": { flags: "--push --all", operands: "name" } },
      },
      stash: {
        subcommands: {
          list: reads(`${FORMAT} ${DIFF} ${REVISIONS}`, "ref{0}"),
          show: shows(`${DIFF} -p --include-untracked`),
        },
      },
      reflog: {
        flags: `${FORMAT} ${REVISIONS}`,
        bare: true,
        subcommands: { show: shows(`${FORMAT} ${REVISIONS}`), exists: reads("") },
      },
      worktree: { subcommands: { list: { flags: "--porcelain -v -z" } } },
      config: {
        flags:
          "-l --list --get=any --get-all=any --get-regexp=any --local --global --system --worktree --show-origin --show-scope -z --null --name-only --type=name --bool --int --path --includes --no-includes",
        operands: "name?",
        check: readsSetting,
      },
      notes: { bare: true, subcommands: { list: reads(""), show: reads("") } },
      "check-ignore": { flags: "-v --verbose -n --non-matching -q --quiet --no-index", operands: "ref+" },
      "version --version": { flags: "--build-options" },
    },
    match: [
      "git status",
      "git status --short --branch",
      "git log --oneline -n 20",
      "git log -5 --stat -- src",
      "git diff HEAD~1 --name-only",
      "git show HEAD:README.md",
      "git branch -a",
      "git branch --list 'feature/*'",
      "git tag -l 'v*'",
      "git remote -v",
      "git blame -L 1,20 a.ts",
      "git stash list",
      "git config --get user.name",
      "git config user.name",
      "git rev-parse --abbrev-ref HEAD",
      "git --no-pager log -1",
      "git reflog",
      "git grep -n foo",
      "git --version",
      "git describe --tags --always",
    ],
    not_match: [
      "git",
      "git push",
      "git fetch",
      "git -c core.pager=x log",
      "git -C /x status",
      "git --git-dir=/x log",
      "git --exec-path=/x status",
      "git -p log",
      "git --paginate log",
      "git log --ext-diff",
      "git status --ignore-submodules=none",
      "git diff --textconv",
      "git diff --output=x",
      "git log --output x",
      "git log --show-signature",
      "git log --format=%G?",
      "git log --pretty=format:%GS",
      "git show HEAD:.env",
      "git diff --no-index /etc/shadow a",
      "git branch new",
      "git branch -D main",
      "git branch -m a b",
      "git tag v1",
      "git tag -d v1",
      "git remote add a b",
      "git remote show origin",
      "git remote update",
      "git stash",
      "git stash pop",
      "git config user.name x",
      "git config --global user.name x",
      "git config --unset a.b",
      "git config -f x --list",
      "git config --edit",
      "git grep -O foo",
      "git grep --open-files-in-pager=x foo",
      "git reflog expire --all",
      "git worktree add x",
      "git blame --contents=/etc/shadow a",
      "git ls-remote origin",
      "git archive HEAD",
      "git clean -fdx",
      "git checkout .",
      "git rev-parse --git-path x",
      "git cat-file --textconv HEAD:a",
      "git log --help",
      "git help log",
      "git bisect run x",
      "git submodule foreach id",
    ],
  },
];

/** `git branch NAME` makes a branch, and so with tags: a name may stand behind an option that lists only. */
function onlyLists(words: readonly string[]): string | undefined {
  const names = words.filter(
    (word, at) => !word.startsWith("-") && !/^--(?:sort|points-at|format)$/.test(words[at - 1] ?? ""),
  );
  const lists = words.some((word) =>
    /^(?:-l|--list|--contains|--no-contains|--merged|--no-merged|--points-at)(?:=|$)/.test(word),
  );
  return names.length > 0 && !lists ? "it may create what it names" : undefined;
}

/** `git config NAME` shows a setting, `git config NAME VALUE` changes it. */
function readsSetting(words: readonly string[]): string | undefined {
  return words.some((word) => /^(?:-l|--list|--get|--get-all|--get-regexp)(?:=|$)/.test(word)) ||
    words.some((word) => /^[\w-]+\.[\w.-]+$/.test(word))
    ? undefined
    : "it does not only read";
}
