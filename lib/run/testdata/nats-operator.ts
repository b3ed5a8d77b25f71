import { nkeys } from "nats";

/** The texts of a NATS server that lets users in by JWT, and of one user's login. */
export interface NatsOperator {
  /** For the server's configuration file. */
  config: string;
  /** For the user's credentials file. */
  creds: string;
}

type KeyPair = ReturnType<typeof nkeys.createUser>;

/** Makes an operator, an account with JetStream and a user, as `nsc` would. */
export function natsOperator(): NatsOperator {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
  const system = nkeys.createAccount(); // JetStream wants one
  const limits = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  const anything = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
  const operatorJwt = jwt(operator, operator, { type: "operator", version: 2 });
  const accountJwt = jwt(operator, account, { type: "account", version: 2, limits: { ...anything, ...limits } });
  const userJwt = jwt(account, user, { type: "user", version: 2, subs: -1, data: -1, payload: -1 });
  const systemJwt = jwt(operator, system, { type: "account", version: 2, limits: anything });
  const [id, systemId] = [account.getPublicKey(), system.getPublicKey()];
  return {
    config: [
      `operator: ${operatorJwt}`,
      `system_account: ${systemId}`,
      "resolver: MEMORY",
      `resolver_preload: { ${id}: ${accountJwt}, ${systemId}: ${systemJwt} }`,
    ].join("\n"),
    creds: [
      "-----BEGIN NATS USER JWT-----",
      userJwt,
      "------END NATS USER JWT------",
      "",
      "-----BEGIN USER NKEY SEED-----",
      new TextDecoder().decode(user.getSeed()),
      "------END USER NKEY SEED------",
      "",
    ].join("\n"),
  };
}

/** https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt */
function jwt(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const iat = Math.floor(Date.now() / 1000);
  const claims = { jti: subject.getPublicKey(), iat, iss: issuer.getPublicKey(), sub: subject.getPublicKey(), nats };
  const body = [{ typ: "JWT", alg: "ed25519-nkey" }, claims].map(base64).join(".");
  const signature = Buffer.from(issuer.sign(new TextEncoder().encode(body))).toString("base64url");
  return `${body}.${signature}`;
}

function base64(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
