/** What a server of one machine is configured with. */
export interface ServerFacts {
  /** Its data, and the sockets of its APIs. */
  folder: string;
  /** The private key that it signs its requests to workers with, in PEM. */
  identityFile: string;
}

/**
 * The configuration of a Restate server for the runs of one machine, in TOML. Its APIs have no passwords, and the admin's shows
 * what models and devices said: they listen on Unix sockets in a private folder only. It reports nothing to its makers.
 * One partition and little memory: its defaults are made for a cluster.
 */
export function serverConfig({ folder, identityFile }: ServerFacts): string {
  return `roles = ["http-ingress", "admin", "worker", "log-server", "metadata-server"]
cluster-name = "reeve"
node-name = "${NODE}"
auto-provision = true
default-num-partitions = 1
listen-mode = "unix"
base-dir = ${JSON.stringify(folder)}
disable-telemetry = true
log-format = "json"
log-filter = "warn"
rocksdb-total-memory-size = "64 MiB"
shutdown-timeout = "10s"

[worker.invoker]
request-identity-private-key-pem-file = ${JSON.stringify(identityFile)}

[admin]
disable-web-ui = true

[admin.query-engine]
memory-size = "64 MiB"

[bifrost]
record-cache-memory-size = "16 MiB"
`;
}

const NODE = "reeve";

/** Where the server's APIs are. */
export function serverSockets(folder: string): { ingress: string; admin: string } {
  return { ingress: `${folder}/${NODE}/ingress.sock`, admin: `${folder}/${NODE}/admin.sock` };
}
