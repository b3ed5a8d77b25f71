import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { CpuProfile } from "../profile/categories.ts";

/** What a server has used since it started. */
export interface Usage {
  cpuUs: number;
  rssBytes: number;
}

/** What a server holds when its garbage has been collected, in bytes. */
export interface Memory {
  rssBytes: number;
  heapBytes: number;
  externalBytes: number;
}

/** A server in a process of its own. */
export interface ServerProcess {
  url: string;
  token: string;
  /** Whom its callers have to trust, PEM; empty where it listens in cleartext. */
  ca: string;
  usage(): Promise<Usage>;
  /** Collects the server's garbage first. */
  memory(): Promise<Memory>;
  /** Profiles the server while `work` goes on; only the governed one answers. */
  profile(work: () => Promise<void>): Promise<CpuProfile>;
  stop(): Promise<void>;
}

/** Starts bench/servers/<name>.ts and waits until it says where it listens. */
export async function startServer(name: string): Promise<ServerProcess> {
  const child = fork(join(import.meta.dirname, "..", "servers", `${name}.ts`), { stdio: "inherit" });
  const ready = await Promise.race([nextMessage(child), once(child, "exit").then(() => undefined)]);
  if (ready === undefined) throw new Error(`the ${name} server ended before it listened`);
  const { url, token = "", ca = "" } = ready as { url: string; token?: string; ca?: string };
  return {
    url,
    token,
    ca,
    async usage() {
      child.send("usage");
      return (await nextMessage(child)) as Usage;
    },
    async memory() {
      child.send("memory");
      return (await nextMessage(child)) as Memory;
    },
    async profile(work) {
      child.send("profile");
      await nextMessage(child);
      await work();
      child.send("profiled");
      return (await nextMessage(child)) as CpuProfile;
    },
    async stop() {
      const gone = once(child, "exit");
      child.disconnect();
      const timer = setTimeout(() => child.kill("SIGKILL"), name === "governed" ? 8000 : 200);
      await gone;
      clearTimeout(timer);
    },
  };
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const [message] = (await once(child, "message")) as unknown[];
  return message;
}
