import { lstatSync, readlinkSync } from "node:fs";
import type { Isolation } from "./isolation.ts";
import { STATUS_FD } from "./start-script.ts";

/** What a sandbox shows of the machine. Paths are real and absolute. */
export interface View {
  isolation: Exclude<Isolation, "none">;
  /** Whether it shares the machine's network. */
  network: boolean;
  readRoots: readonly string[];
  writeRoots: readonly string[];
  /** What is hidden although a root holds it. */
  masks: readonly Mask[];
}

/** A path that exists and is shown without its content. */
export interface Mask {
  path: string;
  kind: "file" | "folder";
}

/** The descriptors that bwrap reads its arguments and the filter from. */
export const ARGUMENTS_FD = STATUS_FD + 1;
export const FILTER_FD = STATUS_FD + 2;
export const COPIED_FD = STATUS_FD + 3;

/** Its whole command line: the rest comes by a descriptor, because /proc/1/cmdline shows it inside. */
export const COMMAND: readonly string[] = ["--args", String(ARGUMENTS_FD), "--", "/bin/sh", "-s"];

/** Where programs and their libraries lie. Usually links into /usr. */
const SYSTEM = ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/** Files of /etc that programs look up. They are copied in: a bind of each would be a third of what a start takes. */
export const COPIED = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/ld.so.cache"];

/** What else of /etc they look up: usually links, and a folder of links. The rest of it is not shown. */
const SETTINGS = ["/etc/localtime", "/etc/os-release", "/etc/alternatives"];

/** What a program that talks to other machines looks up besides. */
const NETWORK_SETTINGS = [
  "hosts",
  "resolv.conf",
  "services",
  "protocols",
  "ssl/certs",
  "ssl/openssl.cnf",
  "ca-certificates",
  "pki",
];

/** How much a program may keep in the sandbox's own folders, in bytes. They are gone with it. */
const SCRATCH: Readonly<Record<View["isolation"], number>> = { read_only: 64 * 1024 ** 2, workspace: 1024 ** 3 };

/**
 * The arguments of bwrap (0.8 or newer) for a view: namespaces of its own, no capabilities, no further user namespaces, the
 * system's programs, the roots, and nothing else of the machine. Ended by NUL each, as --args reads them.
 *
 * @param copied the files that bwrap gets by descriptors from COPIED_FD on.
 */
export function viewArguments(view: View, copied: readonly string[]): string {
  const { isolation, network, readRoots, writeRoots, masks } = view;
  const binding = isolation === "read_only" ? "--ro-bind" : "--bind";
  const whole = [...readRoots, ...writeRoots].includes("/");
  const size = String(SCRATCH[isolation]);
  const roots = [...readRoots.map((path) => ["--ro-bind", path]), ...writeRoots.map((path) => [binding, path])].sort(
    ([, one = ""], [, other = ""]) => one.length - other.length,
  );
  return [
    ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", ...(network ? [] : ["--unshare-net"])],
    ["--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ...(whole
      ? [[binding === "--bind" && writeRoots.includes("/") ? binding : "--ro-bind", "/", "/"]]
      : systemBinds(network, copied)),
    ["--proc", "/proc", "--dev", "/dev"],
    ...(whole ? [] : [["--size", size, "--tmpfs", "/tmp"]]),
    ["--size", size, "--tmpfs", "/dev/shm"],
    ...roots.filter(([, path]) => path !== "/").map(([bind = "", path = ""]) => [bind, path, path]),
    ...masks.map(maskBind),
    ["--remount-ro", "/dev", ...(whole ? [] : ["--remount-ro", "/"])],
    ["--chdir", "/", "--seccomp", String(FILTER_FD)],
  ]
    .flat()
    .map((word) => `${word}\0`)
    .join("");
}

function systemBinds(network: boolean, copied: readonly string[]): string[][] {
  const settings = network ? NETWORK_SETTINGS.map((name) => `/etc/${name}`) : [];
  return [
    ["--ro-bind", "/usr", "/usr"],
    ...[...SYSTEM, ...SETTINGS].flatMap(systemBind),
    ...copied.map((path, at) => ["--perms", "0644", "--file", String(COPIED_FD + at), path]),
    ...settings.map((path) => ["--ro-bind-try", path, path]),
  ];
}

function systemBind(path: string): string[][] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  return [stats.isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path]];
}

/** A device file on a bind without devices cannot be opened, and a folder without permissions shows nothing. */
function maskBind({ path, kind }: Mask): string[] {
  return kind === "file"
    ? ["--ro-bind", "/dev/null", path]
    : ["--perms", "0000", "--tmpfs", path, "--remount-ro", path];
}
