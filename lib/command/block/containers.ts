import { afterOptions } from "./wrappers.ts";

const RUN = {
  short: "veplwhuanmc",
  long: `volume env publish label workdir hostname user name network mount entrypoint memory cpus platform restart device
    cap-add cap-drop security-opt add-host env-file ip link log-driver pid ipc uts tmpfs ulimit pull`
    .split(/\s+/)
    .map((name) => `--${name}`),
};

/**
 * The command that a program runs in a container or pod; the folders of this machine that it sees there stand for
 * themselves. Undefined where the program is none of these; empty where it runs none.
 */
export function containerCommand(program: string, args: readonly string[]): readonly string[] | undefined {
  if (/^(?:docker|podman|nerdctl)$/.test(program)) return dockerCommand(args);
  if (/^(?:kubectl|oc|lxc|incus)$/.test(program)) return podCommand(args);
  return undefined;
}

function dockerCommand(args: readonly string[]): readonly string[] {
  const words = afterOptions(args, { short: "Hcl", long: ["--host", "--context", "--config", "--log-level"] });
  const verb = words[0] === "container" || words[0] === "compose" ? words.slice(1) : words;
  if (verb[0] === "exec")
    return afterOptions(verb.slice(1), { short: "euwd", long: ["--env", "--user", "--workdir"], operands: 1 });
  if (verb[0] !== "run" && verb[0] !== "create") return [];
  const command = afterOptions(verb.slice(1), { ...RUN, operands: 1 });
  const mounts = mountsOf(verb);
  return command.map((word) => {
    // The path may stand in a script that the container's shell reads.
    return mounts.reduce((text, { outside, inside }) => {
      const pattern = new RegExp(`(^|[\\s'"=])${inside.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}(?=[/\\s'"]|$)`, "g");
      return text.replace(pattern, (_, before: string) => `${before}${outside || "/"}`);
    }, word);
  });
}

function mountsOf(args: readonly string[]): { outside: string; inside: string }[] {
  return args.flatMap((word) => {
    const source = /(?:^|,)(?:source|src)=(\/[^,]*)/.exec(word)?.[1];
    const target = /(?:^|,)(?:target|dst|destination)=(\/[^,]+)/.exec(word)?.[1];
    if (source !== undefined && target !== undefined)
      return [{ outside: source === "/" ? "" : source, inside: target }];
    const match = /^(?:-v|--volume=)?(\/[^:,]*):(\/[^:,]+)(?::\w+)?$/.exec(word);
    return match === null ? [] : [{ outside: match[1] === "/" ? "" : (match[1] ?? ""), inside: match[2] ?? "" }];
  });
}

function podCommand(args: readonly string[]): readonly string[] {
  const at = args.findIndex((word) => word === "exec" || word === "run" || word === "debug");
  const end = args.indexOf("--");
  return at >= 0 && end > at ? args.slice(end + 1) : [];
}
