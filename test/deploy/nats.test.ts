import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { dialNats, type NatsOptions } from "../../lib/events/nats-connection.ts";
import { eventBusConformance } from "../../lib/events/testdata/conformance.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type NatsServer, startNatsServer } from "../../testkit/nats-server.ts";
import { makeServiceAuthority } from "../../testkit/service-certificates.ts";
import { DEPLOY } from "./compose.ts";
import { natsConfig } from "./nats-config.ts";

const PASSWORD = "7dhGx0e12";

/** The users as compose-setup.sh writes them, taken out of it. */
function composeUsers(): string {
  const script = execFileSync("sed", ["-n", "/<<END$/,/^END$/p", join(DEPLOY, "compose-setup.sh")], {
    encoding: "utf8",
  });
  const folder = mkdtempSync(join(tmpdir(), "reeve-users-"));
  writeFileSync(join(folder, "nats-password"), PASSWORD);
  const users = execFileSync("bash", ["-c", script.replace(/^.*<<END$/m, "cat <<END")], {
    encoding: "utf8",
    env: { ...process.env, certs: folder },
  });
  rmSync(folder, { recursive: true });
  return users;
}

describe.each([
  ["nats/compose.conf", "/certs"],
  ["kubernetes/overlays/single-cluster/nats.conf", "/var/run/nats"],
])("deploy/%s", (path, certificates) => {
  let folder: string;
  let server: NatsServer;
  let login: NatsOptions;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "reeve-nats-"));
    const authority = await makeServiceAuthority(folder);
    // Each file names the server's own certificate in a folder of its own, with the authority's beside it or above it.
    const own = path.startsWith("nats/") ? "nats" : "tls";
    const { caFile } = await authority.issue(own);
    writeFileSync(join(folder, own, "ca.crt"), authority.certificate);
    writeFileSync(join(folder, "server.conf"), natsConfig(path, { [certificates]: folder }).replace(" certs/", " "));
    writeFileSync(join(folder, "nats-users.conf"), composeUsers());
    vi.stubEnv("REEVE_NATS_PASSWORD", PASSWORD);
    server = await startNatsServer({ args: ["-c", join(folder, "server.conf")] });
    login = { servers: [`tls://127.0.0.1:${server.port}`], user: "reeve", pass: PASSWORD, tls: { caFile } };
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  eventBusConformance("the bus under its permissions", (logger) =>
    createNatsBus({ ...login, ...(logger && { logger }) }),
  );

  test("refuses a login without the password", async () => {
    await expect(createNatsBus({ ...login, pass: "another" })).rejects.toThrow(/Authorization Violation/i);
  });

  test("lets the services publish and receive nothing else", async () => {
    const client = await dialNats(login);
    try {
      const refused: unknown[] = [];
      void (async () => {
        for await (const status of client.status()) refused.push(status);
      })();
      client.subscribe("elsewhere.>", { callback: () => undefined });
      client.publish("elsewhere.x");
      await client.flush();
      await eventually(() => {
        for (const operation of ["subscription", "publish"])
          expect(refused).toContainEqual(
            expect.objectContaining({ permissionContext: expect.objectContaining({ operation }) }),
          );
      });
    } finally {
      await client.close();
    }
  });
});
