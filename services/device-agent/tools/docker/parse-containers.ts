import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ContainerSchema } from "../../../../gen/ts/reeve/tools/v1/docker_pb.ts";

type Container = MessageInitShape<typeof ContainerSchema>;

/**
 * Reads what `docker ps --format json` prints, an object a line, and what `podman ps --format json` prints, one array.
 * They name and shape the same facts differently. Throws a SyntaxError for text that is neither.
 */
export function parseContainers(output: string): Container[] {
  const text = output.trim();
  if (text === "") return [];
  const rows = text.startsWith("[") ? JSON.parse(text) : text.split("\n").map((line) => JSON.parse(line));
  return (rows as Record<string, unknown>[]).map(toContainer);
}

function toContainer(row: Record<string, unknown>): Container {
  return {
    id: text(row.ID ?? row.Id),
    name: text(row.Names),
    image: text(row.Image),
    state: text(row.State),
    status: text(row.Status),
    ports: portsOf(row.Ports),
    created: text(row.CreatedAt ?? row.Created),
  };
}

function text(value: unknown): string {
  if (Array.isArray(value)) return value.map(text).join(",");
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

interface PodmanPort {
  host_ip?: string;
  host_port?: number;
  container_port?: number;
  protocol?: string;
  range?: number;
}

function portsOf(value: unknown): string {
  if (!Array.isArray(value)) return text(value);
  return (value as PodmanPort[]).map(portOf).join(", ");
}

function portOf({ host_ip, host_port, container_port, protocol, range = 1 }: PodmanPort): string {
  const span = (port = 0): string => (range > 1 ? `${port}-${port + range - 1}` : String(port));
  const inside = `${span(container_port)}/${protocol ?? "tcp"}`;
  return host_port ? `${host_ip || "0.0.0.0"}:${span(host_port)}->${inside}` : inside;
}
