import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type NatsServer, startNatsServer } from "./nats-server.ts";
import type { ServiceAuthority } from "./service-certificates.ts";

/** How services reach a NATS server. */
export interface NatsAccess {
  /** Environment of each service. */
  env: Readonly<Record<string, string>>;
}

/** A NATS server with TLS and one login. */
export interface SecuredNats extends NatsServer, NatsAccess {
  /** The login of the control plane. */
  login: { user: string; pass: string };
}

/** The access to a server without either. */
export function openNats({ url }: NatsServer): NatsAccess {
  return { env: { REEVE_NATS_URL: url } };
}

/** Starts a server with both. Its files are in the folder. */
export async function startSecuredNats(folder: string, authority: ServiceAuthority): Promise<SecuredNats> {
  const login = { user: "reeve", pass: randomBytes(12).toString("hex") };
  const { certFile, keyFile, caFile } = await authority.issue("nats");
  const [config, passwordFile] = [join(folder, "nats.conf"), join(folder, "nats-password")];
  await writeFile(passwordFile, login.pass, { mode: 0o600 });
  await writeFile(
    config,
    `tls { cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${caFile}" }
authorization { users = [{ user: "${login.user}", password: "${login.pass}" }] }
`,
    { mode: 0o600 },
  );
  const server = await startNatsServer({ args: ["-c", config] });
  return {
    ...server,
    login,
    env: {
      REEVE_NATS_URL: `tls://127.0.0.1:${server.port}`,
      REEVE_NATS_USER: login.user,
      REEVE_NATS_PASSWORD_FILE: passwordFile,
      REEVE_NATS_CA_FILE: caFile,
    },
  };
}
