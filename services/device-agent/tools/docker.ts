import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type {
  Docker,
  DockerExecRequest,
  DockerExecResponseSchema,
  DockerListRequest,
  DockerListResponseSchema,
  DockerLogsRequest,
  DockerLogsResponseSchema,
} from "../../../gen/ts/reeve/tools/v1/docker_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Executor } from "../executor/executor.ts";
import { type DockerOptions, findEngine } from "./docker/engine.ts";
import { parseContainers } from "./docker/parse-containers.ts";
import { type Finished, programFailed, runProgram } from "./outcome.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

const DEFAULT_CONTAINERS = 100;
const DEFAULT_LINES = 200;

/** A list of a thousand containers with all their labels. */
const LIST_OUTPUT = 16 * 1024 * 1024;

/** Containers, by the client of Docker or Podman, whichever has an engine that answers. */
export function createDockerTools(options: DockerOptions = {}): ToolFamily<typeof Docker> {
  const docker = createClient(options);
  return {
    list: (input, context) => list(docker, input, context),
    exec: (input, context) => exec(docker, input, context),
    logs: (input, context) => logs(docker, input, context),
  };
}

interface ClientRun {
  tool: string;
  args: readonly string[];
  timeoutMs?: number;
  maxOutputBytes?: number;
  live?: boolean;
}

type Client = (context: ToolContext, run: ClientRun) => Promise<{ program: string; run: Finished }>;

/** The client of the engine that answers, which is looked for once. Fault: NOT_AVAILABLE where none does. */
export function createClient(options: DockerOptions): Client {
  const known = new WeakMap<Executor, string>();
  const programFor = async (executor: Executor, tool: string): Promise<string> => {
    const remembered = known.get(executor);
    if (remembered !== undefined) return remembered;
    const engine = await findEngine(executor, options);
    const { program } = engine;
    if (engine.kind === "none") throw fault(ErrorReason.NOT_AVAILABLE, { tool, program }, { message: engine.why });
    known.set(executor, program);
    return program;
  };
  return async (context, { tool, args, ...rest }) => {
    const program = await programFor(context.executor, tool);
    const argv = [program, ...args];
    return { program, run: await runProgram(context, { argv, cwd: "/", toolEnv: options.env ?? {}, ...rest }) };
  };
}

async function list(
  docker: Client,
  { all, maxResults }: DockerListRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof DockerListResponseSchema>> {
  const args = ["ps", "--no-trunc", "--format", "json", ...(all ? ["--all"] : [])];
  const { program, run } = await docker(context, {
    tool: "docker.list",
    args,
    maxOutputBytes: LIST_OUTPUT,
    live: false,
  });
  if (run.exitCode !== 0) throw programFailed(program, run);
  const containers = parseContainers(run.stdout);
  const limit = maxResults || DEFAULT_CONTAINERS;
  return { containers: containers.slice(0, limit), truncated: containers.length > limit };
}

async function exec(
  docker: Client,
  { container, argv, user, cwd, timeoutMs }: DockerExecRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof DockerExecResponseSchema>> {
  await requireContainer(docker, container, context, "docker.exec");
  const options = [...(user ? ["--user", user] : []), ...(cwd ? ["--workdir", cwd] : [])];
  const args = ["exec", ...options, "--", container, ...argv];
  const { run } = await docker(context, { tool: "docker.exec", args, timeoutMs });
  return run;
}

async function logs(
  docker: Client,
  { container, tail, since }: DockerLogsRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof DockerLogsResponseSchema>> {
  await requireContainer(docker, container, context, "docker.logs");
  const from = since === undefined ? [] : ["--since", timestampDate(since).toISOString()];
  const args = ["logs", "--timestamps", "--tail", String(tail || DEFAULT_LINES), ...from, "--", container];
  const { program, run } = await docker(context, { tool: "docker.logs", args });
  if (run.exitCode !== 0) throw programFailed(program, run);
  const { stdout, stderr, truncated } = run;
  return { stdout, stderr, truncated };
}

/** A client's own failure must not look like the output of the program in the container. */
async function requireContainer(docker: Client, container: string, context: ToolContext, tool: string): Promise<void> {
  const args = ["container", "inspect", "--format", "{{.State.Running}}", "--", container];
  const { program, run } = await docker(context, { tool, args, live: false });
  if (run.exitCode === 0 && (tool !== "docker.exec" || run.stdout.trim() === "true")) return;
  if (run.exitCode === 0)
    throw programFailed(program, { ...run, exitCode: 1, stderr: `container ${container} is not running` });
  if (!/no such (?:container|object)/i.test(run.stderr)) throw programFailed(program, run);
  throw fault(ErrorReason.TARGET_NOT_FOUND, { field: "container" }, { message: `there is no container ${container}` });
}
