import type { DescService } from "@bufbuild/protobuf";
import { DeviceTools } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import { Docker } from "../../../gen/ts/reeve/tools/v1/docker_pb.ts";
import { FileSystem } from "../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { Git } from "../../../gen/ts/reeve/tools/v1/git_pb.ts";
import { Http } from "../../../gen/ts/reeve/tools/v1/http_pb.ts";
import { Job } from "../../../gen/ts/reeve/tools/v1/job_pb.ts";
import { Matrix } from "../../../gen/ts/reeve/tools/v1/matrix_pb.ts";
import { Package } from "../../../gen/ts/reeve/tools/v1/package_pb.ts";
import { Process } from "../../../gen/ts/reeve/tools/v1/process_pb.ts";
import { Shell } from "../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { Ssh } from "../../../gen/ts/reeve/tools/v1/ssh_pb.ts";
import type { HostList } from "../../../lib/hosts/host-list.ts";
import type { Executor } from "../executor/executor.ts";
import { deviceTools } from "./device.ts";
import { type DockerOptions, findEngine } from "./docker/engine.ts";
import { createDockerTools } from "./docker.ts";
import { fileSystemTools } from "./file-system.ts";
import type { GitOptions } from "./git/run-git.ts";
import { createGitTools } from "./git.ts";
import type { ConnectOptions } from "./http/options.ts";
import { createHttpTools } from "./http.ts";
import { jobTools } from "./job.ts";
import { createMatrixTools } from "./matrix.ts";
import { packageTools } from "./package.ts";
import { createDockerPreviews } from "./preview/docker.ts";
import { fileSystemPreviews } from "./preview/file-system.ts";
import { createGitPreviews } from "./preview/git.ts";
import { packagePreviews } from "./preview/package.ts";
import { createProcessPreviews } from "./preview/process.ts";
import { createProcessTools } from "./process.ts";
import { shellTools } from "./shell.ts";
import { createSshTools, type SshOptions } from "./ssh.ts";
import type { ToolFamily, ToolPreviews } from "./tool.ts";

/** How the built-in tools are set up. */
export interface ToolOptionsByFamily {
  git?: GitOptions;
  docker?: DockerOptions;
  /** Where the owner lets tools connect. Default nowhere: the tools that connect are not offered. */
  hosts?: Pick<HostList, "hasHosts">;
  connect?: ConnectOptions;
  ssh?: SshOptions;
}

/** Why a family cannot work on this machine although it has a program of it. */
export interface MissingPart {
  program: string;
  why: string;
}

/** Finds out what the machine lacks for a family. Undefined where nothing is missing. */
export type FamilyProbe = (executor: Executor) => Promise<MissingPart | undefined>;

/** A service of proto/reeve/tools/v1 with its implementation. */
export interface BuiltInFamily<S extends DescService = DescService> {
  service: S;
  tools: ToolFamily<S>;
  previews: ToolPreviews<S>;
  /** Looks closer than at the PATH. */
  probe: FamilyProbe;
  /** Its tools run at once, whatever else runs: see DeviceTool. Default false. */
  immediate?: boolean;
}

/** The one list of built-in tools: a new service needs one line here, and the compiler names what is missing. */
export function builtInFamilies(options: ToolOptionsByFamily): BuiltInFamily[] {
  const needsHosts: FamilyProbe = async () => (options.hosts?.hasHosts === true ? undefined : NO_HOST_NAMED);
  return [
    family(DeviceTools, deviceTools),
    family(Shell, shellTools),
    family(FileSystem, fileSystemTools, { previews: fileSystemPreviews }),
    family(Git, createGitTools(options.git), { previews: createGitPreviews(options.git) }),
    { ...family(Job, jobTools), immediate: true },
    family(Package, packageTools, { previews: packagePreviews }),
    family(Process, createProcessTools(), { previews: createProcessPreviews() }),
    family(Docker, createDockerTools(options.docker), {
      previews: createDockerPreviews(options.docker),
      probe: (executor) => missingEngine(executor, options.docker ?? {}),
    }),
    family(Http, createHttpTools(options.connect), { probe: needsHosts }),
    family(Matrix, createMatrixTools(options.connect), { probe: needsHosts }),
    family(Ssh, createSshTools({ ...options.connect, ...options.ssh }), { probe: needsHosts }),
  ];
}

const NO_HOST_NAMED: MissingPart = {
  program: "hosts",
  why: "the device's owner named no host to connect to (REEVE_DEVICE_HOSTS)",
};

function family<S extends DescService>(
  service: S,
  tools: ToolFamily<S>,
  { previews = {}, probe = async () => undefined }: { previews?: ToolPreviews<S>; probe?: FamilyProbe } = {},
): BuiltInFamily {
  // The table reads methods by name; their types are proved here, where service and tools meet.
  return {
    service,
    tools: tools as unknown as ToolFamily<DescService>,
    previews: previews as ToolPreviews<DescService>,
    probe,
  };
}

async function missingEngine(executor: Executor, options: DockerOptions): Promise<MissingPart | undefined> {
  const engine = await findEngine(executor, options);
  return engine.kind === "client" ? undefined : { program: engine.program, why: engine.why };
}
