import type { Executor } from "../../executor/executor.ts";

/** How the docker tools are set up. */
export interface DockerOptions {
  /** Variables that the client gets besides the whitelist, such as DOCKER_HOST. Default none. */
  env?: Readonly<Record<string, string>>;
}

/** The client whose engine answers, or why there is none. */
export type Engine = { kind: "client"; program: string } | { kind: "none"; program: string; why: string };

/** Clients of container engines, in the order in which they are tried. */
const CLIENTS = ["docker", "podman"] as const;

/** How long an engine may take to answer, in milliseconds. */
const ANSWER_MS = 3000;

/** Finds the first client on the PATH whose engine answers within 3 s. */
export async function findEngine(executor: Executor, options: DockerOptions): Promise<Engine> {
  const here = CLIENTS.filter((program) => executor.resolve(program) !== undefined);
  const reasons: string[] = [];
  for (const program of here) {
    const why = await whySilent(executor, program, options);
    if (why === undefined) return { kind: "client", program };
    reasons.push(why);
  }
  if (here.length === 0)
    return { kind: "none", program: CLIENTS.join(", "), why: "neither docker nor podman is on the PATH" };
  return { kind: "none", program: here.join(", "), why: reasons.join("; ") };
}

async function whySilent(executor: Executor, program: string, options: DockerOptions): Promise<string | undefined> {
  const outcome = await executor.run({
    // Listing asks the engine and, unlike "version", fails where it does not answer.
    argv: [program, "ps", "--quiet", "--last", "1"],
    cwd: "/",
    toolEnv: options.env ?? {},
    timeoutMs: ANSWER_MS,
    signal: new AbortController().signal,
  });
  if (outcome.kind === "exited" && outcome.code === 0) return undefined;
  if (outcome.kind === "timed_out") return `the engine of ${program} did not answer within ${ANSWER_MS} ms`;
  const words = outcome.stderr.trim().split("\n")[0] || "it gave no reason";
  return `the engine of ${program} does not answer: ${words}`;
}
