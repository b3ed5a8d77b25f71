import { valuesOf } from "./wrappers.ts";

/** Options, by program, whose value the program hands to a shell. */
const OPTIONS: ReadonlyMap<string, (args: readonly string[]) => string[]> = new Map([
  ["env", (args) => valuesOf(args, "S", "split-string")],
  ["flock", (args) => valuesOf(args, "c", "command")],
  [
    "tar",
    (args) => [
      ...valuesOf(args, "IF", "to-command", "use-compress-program", "info-script", "rsh-command"),
      ...actions(args),
    ],
  ],
  ["rsync", (args) => valuesOf(args, "e", "rsh", "rsync-path")],
  ["ssh", (args) => proxies(args)],
  ["scp", (args) => [...valuesOf(args, "S"), ...proxies(args)]],
  ["sftp", (args) => [...valuesOf(args, "S"), ...proxies(args)]],
  ["git", (args) => gitCommands(args)],
  ["man", (args) => valuesOf(args, "P", "pager")],
  ["sort", (args) => valuesOf(args, "", "compress-program")],
  ["split", (args) => valuesOf(args, "", "filter")],
  ["rg", (args) => valuesOf(args, "", "pre")],
  ["sed", (args) => args.flatMap(sedCommands)],
  ["vim", editorCommands],
  ["vi", editorCommands],
  ["nvim", editorCommands],
  ["ex", editorCommands],
  ["vagrant", (args) => valuesOf(args, "c", "command")],
  ["ansible", (args) => valuesOf(args, "a", "args")],
  ["nc", (args) => valuesOf(args, "ec", "exec", "sh-exec")],
  ["ncat", (args) => valuesOf(args, "ec", "exec", "sh-exec")],
  ["socat", (args) => args.flatMap((word) => /\b(?:EXEC|SYSTEM):["']?([^"',]+)/i.exec(word)?.[1] ?? [])],
  ["make", (args) => valuesOf(args, "", "eval").map((text) => text.replace(/^[^:]*:[^;]*;?/, ""))],
  ["su", (args) => valuesOf(args, "c", "command", "session-command")],
]);

/** The shell texts in a program's options. */
export function commandOptions(program: string, args: readonly string[]): readonly string[] {
  return OPTIONS.get(program)?.(args) ?? [];
}

function actions(args: readonly string[]): string[] {
  return args.flatMap((word) => /^(?:--checkpoint-action=)?exec=([\s\S]*)$/.exec(word)?.[1] ?? []);
}

function proxies(args: readonly string[]): string[] {
  return args.flatMap((word) => /(?:ProxyCommand|LocalCommand|KnownHostsCommand)[= ]([\s\S]*)$/i.exec(word)?.[1] ?? []);
}

function gitCommands(args: readonly string[]): string[] {
  const configured = valuesOf(args, "c", "config-env").map((value) =>
    value.slice(value.indexOf("=") + 1).replace(/^!/, ""),
  );
  const behind = args.indexOf("foreach");
  const texts = behind < 0 ? [] : [args.slice(behind + 1).join(" ")];
  return [...configured, ...texts, ...valuesOf(args, "x", "exec", "tree-filter", "index-filter", "upload-pack")];
}

/** What GNU sed's "e" runs. */
function sedCommands(script: string): string[] {
  const match = /^(?:\d+|\$)?e\s+([\s\S]+)$/.exec(script);
  return match?.[1] === undefined ? [] : [match[1]];
}

function editorCommands(args: readonly string[]): string[] {
  return [...valuesOf(args, "c", "cmd"), ...args.filter((word) => word.startsWith("+"))].flatMap(
    (text) => /!([\s\S]+)$/.exec(text)?.[1] ?? [],
  );
}
