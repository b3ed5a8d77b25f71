import { programsOf } from "./block/block.ts";

/** Where a command would be that its own argument list does not show. */
export type HiddenCommands = { kind: "input"; program: string } | { kind: "variable"; program: string; name: string };

/** Programs that run, or may run, what they read from their standard input. Without version numbers. */
const READS_COMMANDS = new Set(
  (
    "sh bash dash zsh ksh mksh ash fish csh tcsh rbash python pypy perl ruby node nodejs deno bun php lua luajit tclsh wish expect " +
    "Rscript R julia ghci irb jshell groovy scala guile racket sbcl clisp elixir iex erl swift pwsh osascript gdb lldb awk gawk mawk " +
    "nawk sed ed ex vi vim nvim emacs m4 make gmake dc bc psql mysql mariadb sqlite sqlite3 redis-cli mongosh mongo sqlplus duckdb " +
    "ssh telnet nc ncat socat ftp sftp lftp at batch crontab xargs parallel docker podman nerdctl kubectl oc nsenter chroot su sudo " +
    "doas runuser screen tmux script busybox toybox systemd-run systemctl patch git cpio tar virsh iptables-restore nft fdisk sfdisk " +
    "parted debugfs"
  ).split(" "),
);

/** Variables whose value a program runs, or loads code from, whichever program reads them. */
const RUNS_VARIABLE = new RegExp(
  `^(?:${[
    "BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|ZDOTDIR|GCONV_PATH",
    "PERL5OPT|PERL5DB|PERL5LIB|PYTHONSTARTUP|PYTHONPATH|PYTHONHOME|RUBYOPT|RUBYLIB|NODE_OPTIONS|NODE_PATH|LUA_INIT",
    "JAVA_TOOL_OPTIONS|GIT_SSH|GIT_ASKPASS|GIT_EXTERNAL_DIFF|GIT_CONFIG\\w*|GIT_EXEC_PATH|GIT_TEMPLATE_DIR",
    "EDITOR|VISUAL|PAGER|MANPAGER|LESSOPEN|LESSCLOSE|BROWSER|RSYNC_RSH|TAR_OPTIONS|SSH_ASKPASS|SUDO_ASKPASS|MAKEFLAGS",
    "\\w+_(?:COMMAND|CMD|EDITOR|PAGER)",
  ].join("|")})$`,
);

/**
 * Whether a program of an argument list would take commands from where they cannot be seen: its standard input, or a
 * variable. By name, through sudo, env, timeout and the like; undefined where no such program is known. A seat belt, as the
 * blocklist is: a program of another name may do the same.
 */
export function takesCommands(
  argv: readonly string[],
  { hasInput, variables }: { hasInput: boolean; variables: readonly string[] },
): HiddenCommands | undefined {
  const programs = programsOf(argv);
  const program = programs[0] ?? "";
  const name = variables.find((one) => RUNS_VARIABLE.test(one));
  if (name !== undefined) return { kind: "variable", program, name };
  const reader = hasInput ? programs.find(readsCommands) : undefined;
  return reader === undefined ? undefined : { kind: "input", program: reader };
}

function readsCommands(program: string): boolean {
  return READS_COMMANDS.has(program) || READS_COMMANDS.has(program.replace(/[-.\d]+$/, ""));
}
