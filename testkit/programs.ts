import { access, constants, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { delimiter, join } from "node:path";

/** Makes a folder that is a PATH with these programs of the machine and no others. Throws where one is missing. */
export async function makePath(folder: string, programs: readonly string[]): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (const program of programs) await symlink(await findProgram(program), join(folder, program));
  return folder;
}

async function findProgram(program: string): Promise<string> {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    const path = join(folder, program);
    try {
      await access(path, constants.X_OK);
      return path;
    } catch {
      // The next one, then.
    }
  }
  throw new Error(`this test needs the program ${program} on the PATH`);
}

/** Whether a process runs. One that has ended and was not waited for does not. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // After the name, which may hold anything: the state.
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  return !/^.*\) Z/s.test(stat);
}

/** The processes of this machine that were started with this variable in their environment. Only where there is /proc. */
export async function processesWith(name: string, value: string): Promise<number[]> {
  const pids = (await readdir("/proc").catch(() => [])).filter((entry) => /^\d+$/.test(entry)).map(Number);
  const found: number[] = [];
  for (const pid of pids) {
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.split("\0").includes(`${name}=${value}`)) found.push(pid);
  }
  return found;
}
