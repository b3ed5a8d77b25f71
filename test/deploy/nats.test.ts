import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { CancelSessionSchema, OpenDeviceSchema } from "../../gen/ts/reeve/cluster/v1/replica_pb.ts";
import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { dialNats, type NatsOptions } from "../../lib/events/nats-connection.ts";
import { openNatsPost } from "../../lib/events/nats-post.ts";
import { eventBusConformance } from "../../lib/events/testdata/conformance.ts";
import { createLogger } from "../../lib/log/log.ts";
import { busKeysOf } from "../../services/registry/replicas/bus-key.ts";
import { createSessions, type Sessions, type SessionsOptions } from "../../services/registry/replicas/sessions.ts";
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

  describe("a session between replicas under its permissions", () => {
    const closers: (() => unknown)[] = [];
    afterEach(async () => {
      for (const close of closers.splice(0).reverse()) await close();
    });

    async function replica(self: string, options: Partial<SessionsOptions> = {}): Promise<Sessions> {
      const post = await openNatsPost(login);
      const sessions = createSessions({
        self,
        post,
        keys: busKeysOf(new Uint8Array(32).fill(1)),
        logger: createLogger({ service: "test", level: "silent" }),
        now: Date.now,
        serve: (session) => session.close(),
        onNudge: () => undefined,
        ...options,
      });
      closers.push(() => post.close(), sessions.close);
      await post.flush();
      return sessions;
    }

    test("goes both ways, and a nudge gets to all", async () => {
      const onNudge = vi.fn<() => void>();
      await replica("rep-b", {
        onNudge,
        async serve(session) {
          for await (const message of session.messages()) if (message.case === "cancel") break;
          session.send({ case: "cancel", value: create(CancelSessionSchema) });
          session.close();
        },
      });
      const one = await replica("rep-a");
      const session = one.open("rep-b", {
        case: "openDevice",
        value: create(OpenDeviceSchema, { deviceId: "dev-0123456789abcdef" }),
      });
      session.send({ case: "cancel", value: create(CancelSessionSchema) });
      const heard: unknown[] = [];
      for await (const { case: kind } of session.messages()) heard.push(kind);
      expect(heard).toEqual(["cancel"]);
      one.nudge();
      await eventually(() => expect(onNudge).toHaveBeenCalledTimes(1));
    });
  });

  test("lets nobody in without the password", async () => {
    await expect(createNatsBus({ ...login, pass: "another" })).rejects.toThrow(/Authorization Violation/i);
  });

  test("lets the services say and hear nothing else", async () => {
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
