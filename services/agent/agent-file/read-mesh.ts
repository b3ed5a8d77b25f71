import type { AgentFile, DeviceMesh } from "../../../gen/ts/reeve/agent/v1/agent_file_pb.ts";
import type { MeshConfig } from "./agent-config.ts";
import { urlProblem } from "./agent-url.ts";
import type { AgentFilePlace, Notes } from "./notes.ts";

/** What an enabled device_mesh block says; undefined where there is none. Reports what is wrong with one, enabled or not. */
export function readMesh(
  { deviceMesh: mesh, devices }: AgentFile,
  place: AgentFilePlace,
  notes: Notes,
): MeshConfig | undefined {
  if (mesh === undefined) return undefined;
  const address = addressOf(mesh, place, notes);
  if (!mesh.enabled) {
    if (!notes.read.nodes.has("device_mesh.enabled"))
      notes.warning("device_mesh", "device_mesh is not enabled: the agent gets no device from it");
    return undefined;
  }
  if (mesh.deviceId === "")
    notes.problem(
      "device_mesh",
      "device_mesh is enabled and names no device: write its id or name in device_id (or host)",
    );
  if (devices.length > 0) notes.problem("devices", "device_mesh names the agent's device, too: name the devices once");
  return { device: mesh.deviceId, mode: mesh.mode, ...address, manifestId: mesh.manifestId || undefined };
}

/** The address of the device's agent: the variable's where it is set and not empty, otherwise the file's. */
function addressOf(
  { deviceAgentUrl, deviceAgentUrlEnv: variable }: DeviceMesh,
  { env }: AgentFilePlace,
  notes: Notes,
): Pick<MeshConfig, "deviceAgentUrl" | "urlFrom"> {
  const own = deviceAgentUrl === "" ? undefined : urlProblem(deviceAgentUrl);
  if (own !== undefined) notes.problem("device_mesh.device_agent_url", `device_mesh.device_agent_url ${own}`);
  const named = variable === "" ? "" : (env[variable] ?? "");
  if (named === "") return { deviceAgentUrl: deviceAgentUrl || undefined, urlFrom: undefined };
  const wrong = urlProblem(named);
  if (wrong !== undefined) notes.problem("device_mesh.device_agent_url_env", `${variable} ${wrong}`);
  return { deviceAgentUrl: named, urlFrom: variable };
}
