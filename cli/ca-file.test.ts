import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../gen/ts/reeve/options/v1/access_pb.ts";
import { ToolService } from "../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import { reasonOf } from "../lib/fault/fault.ts";
import { service, testAuthority, testMaterial } from "../lib/identity/testdata/certificates.ts";
import { staticTls } from "../lib/identity/tls-source.ts";
import { createLogger } from "../lib/log/log.ts";
import { principalOf } from "../lib/server/context.ts";
import { createServer, type Server } from "../lib/server/server.ts";
import { readCaFile } from "./ca-file.ts";
import { checkService } from "./doctor/service-checks.ts";
import { UsageError } from "./errors/usage-error.ts";
import { findTarget } from "./find-target.ts";
import { sessionAt } from "./session.ts";

let folder: string;
let server: Server;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "reeve-ca-"));
  const [authority, foreign] = await Promise.all([testAuthority(), testAuthority()]);
  writeFileSync(join(folder, "ca.pem"), authority.certificate);
  writeFileSync(join(folder, "foreign.pem"), foreign.certificate);
  writeFileSync(join(folder, "none.pem"), "nothing\n");
  server = await createServer({
    tls: staticTls(await testMaterial(authority, service("registry"))),
    routes: (router) =>
      router.service(ToolService, {
        listTools: (_request, context) => ({ nextPageToken: principalOf(context).id }),
      }),
    authenticate: (authorization) =>
      authorization === "Bearer t" ? { id: "o", kind: "operator", roles: [Role.OPERATOR], name: "o" } : undefined,
    logger: createLogger({ service: "test", level: "silent" }),
  });
});
afterAll(async () => {
  await server.close(0);
  rmSync(folder, { recursive: true });
});

async function actor(name: string | undefined): Promise<unknown> {
  const env = { REEVE_DATA_DIR: join(folder, "data"), REEVE_REGISTRY_URL: server.url, REEVE_TOKEN: "t" };
  const named = name === undefined ? {} : { REEVE_CA_FILE: join(folder, name) };
  const session = sessionAt(await findTarget({ env: { ...env, ...named }, now: Date.now }, {}));
  try {
    return (await session.registry.listTools({})).nextPageToken;
  } catch (error: unknown) {
    return reasonOf(error);
  } finally {
    session.close();
  }
}

test("an operator's token goes to a control plane that the file's authorities vouch for", async () => {
  expect(await actor("ca.pem")).toBe("o");
});

test.each(["foreign.pem", undefined])("and to no other: %s", async (name) => {
  expect(await actor(name)).toBe(ErrorReason.IDENTITY_REFUSED);
});

test("doctor asks with the same authorities", async () => {
  const check = (name: string) =>
    checkService("registry", server.url, { now: Date.now }, { caFile: join(folder, name) });
  expect(await check("ca.pem")).toMatchObject([{ state: "ok" }]);
  expect(await check("foreign.pem")).toMatchObject([{ state: "broken" }]);
  expect(await check("missing.pem")).toMatchObject([{ state: "broken", text: expect.stringContaining("missing.pem") }]);
});

test.each(["none.pem", "missing.pem"])("a file that is no use is a mistake of the caller: %s", async (name) => {
  expect(() => readCaFile(join(folder, name))).toThrow(UsageError);
  await expect(actor(name)).rejects.toThrow(name);
});
