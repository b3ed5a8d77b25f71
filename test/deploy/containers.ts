import { type Container, type Manifest, podOf } from "./manifests.ts";

/** The containers of a pod, in the order in which they start. */
export function allContainers(pod: { containers: Container[]; initContainers?: unknown }): Container[] {
  return [...((pod.initContainers ?? []) as Container[]), ...pod.containers];
}

/** All containers of some manifests. */
export function containersOf(manifests: readonly Manifest[]): Container[] {
  return manifests.flatMap((manifest) => {
    const pod = podOf(manifest);
    return pod === undefined ? [] : allContainers(pod);
  });
}

/** Containers that run `reeve`. */
export function ourContainers(manifests: readonly Manifest[]): Container[] {
  return containersOf(manifests).filter(({ image }) => image.includes("reeve"));
}

/** The variables of a container; one from a secret has a value of its kind. */
export function environmentOf(
  { env = [], envFrom = [] }: Container,
  manifests: readonly Manifest[],
): Record<string, string> {
  const maps = envFrom.map(({ configMapRef }) => {
    const map = manifests.find(({ kind, metadata }) => kind === "ConfigMap" && metadata.name === configMapRef.name);
    if (map === undefined) throw new Error(`there is no ConfigMap ${configMapRef.name}`);
    return map.data as Record<string, string>;
  });
  const own = env.map(
    ({ name, value }) => [name, value ?? (name.endsWith("_URL") ? "postgres://db/reeve" : "a secret")] as const,
  );
  return Object.assign({}, ...maps, Object.fromEntries(own)) as Record<string, string>;
}
