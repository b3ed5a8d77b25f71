import { type DescMethod, type DescMethodUnary, type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { tool as toolOption } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import { DeviceTools } from "../../gen/ts/reeve/tools/v1/device_pb.ts";
import { Docker } from "../../gen/ts/reeve/tools/v1/docker_pb.ts";
import { FileSystem } from "../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { Git } from "../../gen/ts/reeve/tools/v1/git_pb.ts";
import { Http } from "../../gen/ts/reeve/tools/v1/http_pb.ts";
import { Job } from "../../gen/ts/reeve/tools/v1/job_pb.ts";
import { Matrix } from "../../gen/ts/reeve/tools/v1/matrix_pb.ts";
import { Package } from "../../gen/ts/reeve/tools/v1/package_pb.ts";
import { Process } from "../../gen/ts/reeve/tools/v1/process_pb.ts";
import { Shell } from "../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { Ssh } from "../../gen/ts/reeve/tools/v1/ssh_pb.ts";

/** The services whose RPCs are the built-in tools. */
export const BUILT_IN_SERVICES = [
  DeviceTools,
  Docker,
  FileSystem,
  Git,
  Http,
  Job,
  Matrix,
  Package,
  Process,
  Shell,
  Ssh,
] as const;

/** The RPC that defines each tool of some services, by the tool's name. RPCs without the tool option are left out. */
export function toolMethods(services: readonly DescService[]): ReadonlyMap<string, DescMethodUnary> {
  const methods = new Map<string, DescMethodUnary>();
  for (const service of services) {
    for (const method of service.methods) {
      if (!isUnary(method) || !hasOption(method, toolOption)) continue;
      methods.set(getOption(method, toolOption).name, method);
    }
  }
  return methods;
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}
