/**
 * The id under which monitors know what a call does, by the first capability that its tool
 * needs, capability_<name>_ts_<domain>: "docker.container.list" is
 * capability_container_list_ts_docker. A capability of one word is its own domain.
 */
export function functionId([capability = ""]: readonly string[]): string {
  const [domain = "", ...rest] = capability.split(".");
  return `capability_${rest.join("_") || domain}_ts_${domain}`;
}
