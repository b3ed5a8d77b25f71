import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { PolicyService } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import type { Authority } from "../../lib/identity/authority.ts";
import type { Identity } from "../../lib/identity/spiffe.ts";
import { device, service, testAuthority, testMaterial } from "../../lib/identity/testdata/certificates.ts";
import { staticTls } from "../../lib/identity/tls-source.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import type { RunningService } from "../../lib/run/run-service.ts";
import { runPolicy } from "./main.ts";

let folder: string;
let authority: Authority;
let policy: RunningService;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "reeve-policy-"));
  authority = await testAuthority();
  const { cert, key, ca } = await testMaterial(authority, service("policy"));
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return join(folder, name);
  };
  policy = await runPolicy({
    REEVE_POLICY_PORT: "0",
    REEVE_POLICY_STATE_DIR: join(folder, "state"),
    REEVE_TOKENS_FILE: join(folder, "tokens.json"),
    REEVE_TLS_CERT_FILE: file("cert.pem", cert),
    REEVE_TLS_KEY_FILE: file("key.pem", key),
    REEVE_TLS_CA_FILE: file("ca.pem", ca),
    REEVE_LOG_LEVEL: "silent",
  });
});
afterAll(async () => {
  await policy?.close();
  rmSync(folder, { recursive: true });
});

async function authorizeAs(identity: Identity): Promise<unknown> {
  const tls = staticTls(await testMaterial(authority, identity));
  const serverName = service("policy");
  const transport = createServiceTransport({ baseUrl: policy.server.url, tls, serverName, protocol: "grpc" });
  const error = await createClient(PolicyService, transport)
    .authorize({})
    .catch((cause: unknown) => cause);
  transport.close();
  const detail = faultDetail(error);
  return [detail?.reason, detail?.metadata.why ?? detail?.metadata.roles];
}

test("a registry may ask for decisions; another service and a device may not, each with its reason", async () => {
  // Who is let in gets as far as its empty request.
  expect(await authorizeAs(service("registry"))).toEqual([ErrorReason.INVALID_INPUT, undefined]);
  expect(await authorizeAs(service("policy"))).toEqual([ErrorReason.IDENTITY_REFUSED, "role"]);
  expect(await authorizeAs(device("dev-0123456789abcdef"))).toEqual([ErrorReason.ROLE_REQUIRED, "service"]);
});
