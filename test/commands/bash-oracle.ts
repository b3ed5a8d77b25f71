import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** True where the oracle can run: it needs bash, dash and bubblewrap. */
export const canRunBash = ["/usr/bin/bwrap", "/usr/bin/bash", "/usr/bin/dash"].every((file) => existsSync(file));

/** Writes its own name and arguments, in one write, and ends well. */
const STUB = `#!/oracle/dash
printf '%s\\0' "\${0##*/}" "$@" "$END" >> /oracle/log
`;

/** Runs each text in a bash of its own. What bash cannot find by name is written down as well. */
const DRIVER = `command_not_found_handle() { printf '%s\\0' "$@" "$END" >> /oracle/log; }
export -f command_not_found_handle
while IFS= read -r -d '' text; do
  printf '%s\\0' "$NEXT" "$END" >> /oracle/log
  /oracle/bash --noprofile --norc -c -- "$text" < /dev/null > /dev/null 2>&1
done < /oracle/texts
`;

const [NEXT, END] = ["\x02next\x02", "\x02end\x02"];

/** The argument lists that bash runs for each of some texts, in a place where every program only writes down that it was run. */
export async function runInBash(texts: readonly string[]): Promise<string[][][]> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-oracle-"));
  try {
    const stubs = join(folder, "stubs");
    await mkdir(stubs);
    await mkdir(join(folder, "oracle"));
    await writeFile(join(folder, "oracle", "stub"), STUB, { mode: 0o755 });
    await writeFile(join(folder, "oracle", "driver"), DRIVER);
    await writeFile(join(folder, "oracle", "texts"), texts.map((text) => `${text}\0`).join(""));
    for (const file of ["bash", "dash", "log"]) await writeFile(join(folder, "oracle", file), "");
    for (const name of await readdir("/usr/bin")) await symlink("/oracle/stub", join(stubs, name));
    await run("/usr/bin/bwrap", boxed(folder), { timeout: 300_000, maxBuffer: 1 << 26 });
    return parse(await readFile(join(folder, "oracle", "log"), "utf8"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

function boxed(folder: string): string[] {
  const libraries = ["/usr/lib", "/usr/lib64", "/usr/lib32"].filter((path) => existsSync(path));
  return [
    ..."--unshare-all --die-with-parent --new-session --clearenv --dev /dev --proc /proc --tmpfs /tmp --tmpfs /box --chdir /box".split(
      " ",
    ),
    ...libraries.flatMap((path) => ["--ro-bind", path, path]),
    ..."--symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --symlink usr/bin /sbin --symlink bin /usr/sbin".split(
      " ",
    ),
    ...["--ro-bind", join(folder, "stubs"), "/usr/bin", "--bind", join(folder, "oracle"), "/oracle"],
    ...["--ro-bind", "/usr/bin/bash", "/oracle/bash", "--ro-bind", "/usr/bin/dash", "/oracle/dash"],
    ...[
      "--setenv",
      "PATH",
      "/usr/bin",
      "--setenv",
      "HOME",
      "/box",
      "--setenv",
      "NEXT",
      NEXT as string,
      "--setenv",
      "END",
      END as string,
    ],
    ...["--", "/oracle/bash", "/oracle/driver"],
  ];
}

function parse(log: string): string[][][] {
  const all: string[][][] = [];
  for (const entry of log.split(`${END}\0`)) {
    const argv = entry.split("\0").slice(0, -1);
    if (argv[0] === NEXT) all.push([]);
    else if (argv.length > 0) all.at(-1)?.push(argv);
  }
  return all;
}
