import { ConfigError } from "../config/config.ts";
import { isLoopback } from "../config/loopback.ts";
import type { EventLogger } from "../events/bus.ts";
import type { NatsOptions } from "../events/nats-connection.ts";
import { readPrivateFile } from "../files/private-file.ts";
import { type NatsSettings, natsKeys } from "./nats-keys.ts";
import { secretIn } from "./secret-file.ts";

/**
 * How to connect to the NATS servers of the settings; undefined where they name none. Throws ConfigError for settings that
 * do not go together, and for a server beyond this machine that would get passwords and events in cleartext, and
 * PrivateFileError for a secret that cannot be read.
 */
export function natsOptions(settings: NatsSettings, name: string, logger: EventLogger): NatsOptions | undefined {
  const { natsUrl, natsCredsFile, natsUser, natsPasswordFile } = settings;
  if (natsUrl === undefined) return undefined;
  const servers = natsUrl.split(",").map((server) => server.trim());
  const problems = [...problemsOf(settings), ...servers.flatMap((server) => problemsOfServer(server, settings))];
  if (problems.length > 0) throw new ConfigError(problems);
  if (settings.natsKeyFile !== undefined) readPrivateFile(settings.natsKeyFile);
  return {
    servers,
    name,
    logger,
    ...(natsUser !== undefined && { user: natsUser }),
    ...(natsPasswordFile !== undefined && { pass: passwordIn(natsPasswordFile, logger) }),
    ...(natsCredsFile !== undefined && { creds: secretIn(natsCredsFile, logger) }),
    ...(servers.some((server) => isSecure(server, settings)) && { tls: tlsOf(settings) }),
  };
}

function passwordIn(path: string, logger: EventLogger): () => string {
  const read = secretIn(path, logger);
  return () => read().replace(/\r?\n$/, "");
}

function tlsOf({ natsCaFile, natsCertFile, natsKeyFile }: NatsSettings): NonNullable<NatsOptions["tls"]> {
  return {
    ...(natsCaFile !== undefined && { caFile: natsCaFile }),
    ...(natsCertFile !== undefined && { certFile: natsCertFile }),
    ...(natsKeyFile !== undefined && { keyFile: natsKeyFile }),
  };
}

function problemsOf({ natsCertFile, natsKeyFile, natsUser, natsPasswordFile, natsCredsFile }: NatsSettings): string[] {
  const {
    natsCertFile: cert,
    natsKeyFile: key,
    natsUser: user,
    natsPasswordFile: password,
    natsCredsFile: creds,
  } = natsKeys;
  return [
    ...isHalf(natsCertFile, natsKeyFile, `${cert.name} and ${key.name} need each other`),
    ...isHalf(natsUser, natsPasswordFile, `${user.name} and ${password.name} need each other`),
    ...(natsUser !== undefined && natsCredsFile !== undefined
      ? [`${creds.name} and ${user.name} exclude each other`]
      : []),
  ];
}

function isHalf(one: string | undefined, other: string | undefined, problem: string): string[] {
  return (one === undefined) === (other === undefined) ? [] : [problem];
}

function problemsOfServer(server: string, settings: NatsSettings): string[] {
  const url = URL.parse(server.includes("://") ? server : `nats://${server}`);
  const { natsUrl, natsCaFile, natsAllowPlaintext, natsUser } = natsKeys;
  if (url === null || !["nats:", "tls:"].includes(url.protocol) || url.hostname === "")
    return [`${natsUrl.name} must be servers such as nats://127.0.0.1:4222`];
  if (url.username !== "" || url.password !== "")
    return [`${natsUrl.name} must hold no password, which logs would show; use ${natsUser.name} and a file`];
  if (isSecure(server, settings) || settings.natsAllowPlaintext === true || isLoopback(url.hostname)) return [];
  return [
    `${natsUrl.name} names ${url.host}, which would get events and logins in cleartext; ` +
      `use tls:// or set ${natsCaFile.name}, or set ${natsAllowPlaintext.name} where something else encrypts the way`,
  ];
}

function isSecure(server: string, { natsCaFile, natsCertFile }: NatsSettings): boolean {
  return natsCaFile !== undefined || natsCertFile !== undefined || server.startsWith("tls://");
}
