import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseJoinToken } from "../../lib/identity/join-token.ts";
import { joinControlPlane } from "../../services/device-agent/identity/join.ts";
import { startPlane } from "../../testkit/enrollment.ts";
import { runCli } from "../run-cli.ts";
import { createFakeContext, type FakeContextOptions } from "../testing/fake-context.ts";
import { agentEnvironment } from "./agent-options.ts";

let plane: Awaited<ReturnType<typeof startPlane>>;
let folder = "";
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "reeve-device-"));
  plane = await startPlane();
  writeFileSync(join(folder, "ca.crt"), plane.authority.certificate);
});
afterAll(async () => {
  await plane.close();
  rmSync(folder, { recursive: true });
});

const contextWith = (options: FakeContextOptions = {}) =>
  createFakeContext({
    env: {
      REEVE_REGISTRY_URL: plane.url,
      REEVE_TOKEN: plane.token,
      REEVE_CA_FILE: join(folder, "ca.crt"),
      REEVE_DATA_DIR: join(folder, "data"),
    },
    ...options,
  });
const reeve = async (...words: string[]) => {
  const context = contextWith();
  const code = await runCli(words, context);
  return { code, out: context.stdoutText(), err: context.stderrText() };
};

/** Joins, and resolves with the fingerprint on the machine's screen, while it waits. */
async function joining(token: string, name: string): Promise<{ fingerprint: string; joined: Promise<unknown> }> {
  const shown = Promise.withResolvers<string>();
  const onPending = ({ fingerprint }: { fingerprint: string }) => shown.resolve(fingerprint);
  const joined = joinControlPlane({ token, stateDir: join(folder, name), onPending });
  return { fingerprint: await shown.promise, joined };
}

test("a device from its token to its removal", async () => {
  const made = await reeve("device", "join-token", "web1", "--label", "role=web", "--label", "zone=a", "--ttl", "5m");
  expect(made.code).toBe(0);
  expect(parseJoinToken(made.out)).toMatchObject({ name: "web1", labels: { role: "web", zone: "a" } });
  expect(made.err).toContain("reeve enrollment confirm web1");
  const { fingerprint, joined } = await joining(made.out, "web1");
  expect((await reeve("enrollment", "list", "--state", "pending")).out).toContain("web1");

  const wrong = await reeve(
    "enrollment",
    "confirm",
    "web1",
    "--fingerprint",
    fingerprint.replace(/^../, "00").replace(/..$/, "11"),
  );
  expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("compare again") });
  expect(await reeve("enrollment", "confirm", "web1")).toMatchObject({
    code: 2,
    err: expect.stringContaining("no terminal to ask on"),
  });
  expect(await reeve("enrollment", "confirm", "web1", "--fingerprint", fingerprint.toLowerCase())).toMatchObject({
    code: 0,
    err: expect.stringMatching(/web1 \(dev-[0-9a-f]{16}\) is enrolled/),
  });
  await joined;

  expect((await reeve("device", "lock", "web1", "--why", "lost")).err).toContain("is locked");
  const { enrollments } = JSON.parse((await reeve("enrollment", "list", "--json")).out);
  expect(enrollments).toMatchObject([{ name: "web1", state: "ENROLLMENT_STATE_LOCKED", why: "lost" }]);
  expect((await reeve("device", "unlock", "web1")).err).toContain("is enrolled");
  expect((await reeve("device", "remove", "web1", "--json")).out).toContain("ENROLLMENT_STATE_REMOVED");
});

test("a person compares the fingerprint on a terminal, and may say no", async () => {
  const { out: token } = await reeve("device", "join-token", "web2");
  const { fingerprint, joined } = await joining(token, "web2");
  for (const [answer, code] of [
    ["n\n", 2],
    ["y\n", 0],
  ] as const) {
    const context = contextWith({ terminal: true });
    const done = runCli(["enrollment", "confirm", "web2"], context);
    await context.typeAfter("The same? [y/N] ", answer);
    expect(await done).toBe(code);
    expect(context.stderrText()).toContain(fingerprint);
  }
  await joined;
});

test.each([
  [["device", "join-token", "web 1"], "name"],
  [["device", "join-token", "web1", "--label", "web"], "--label"],
  [["device", "join-token", "web1", "--ttl", "2d"], "--ttl"],
  [["enrollment", "confirm", "unknown", "--fingerprint", "AB"], "no device waits"],
  [["device", "lock", "unknown"], "unknown"],
])("refuses %j", async (words, message) => {
  expect(await reeve(...words)).toMatchObject({ code: 2, err: expect.stringContaining(message) });
});

test("an agent without a folder of its own gets one beside the other data", () => {
  const flags = { read: ["/srv", "/data"], write: [], mode: "all" };
  expect(agentEnvironment(flags, createFakeContext({ env: { REEVE_DATA_DIR: "/var/lib/reeve" } }))).toMatchObject({
    REEVE_DEVICE_STATE_DIR: "/var/lib/reeve/device-agent",
    REEVE_DEVICE_READ_ROOTS: "/srv:/data",
    REEVE_DEVICE_MODE: "all",
  });
});
