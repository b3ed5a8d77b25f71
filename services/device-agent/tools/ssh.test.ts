import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SshExecRequestSchema } from "../../../gen/ts/reeve/tools/v1/ssh_pb.ts";
import type { Resolve } from "../hosts/resolve-host.ts";
import { createSshTools, type SshOptions } from "./ssh.ts";
import { createTestContext, faultOf } from "./testing/context.ts";

/** OpenSSH's server, where the machine has it. REEVE_TEST_SSHD names one elsewhere. */
const SSHD = process.env.REEVE_TEST_SSHD ?? "/usr/sbin/sshd";

/** As root it starts only where the folder is that it drops its rights in. */
const HAS_SERVER = existsSync(SSHD) && (process.getuid?.() !== 0 || existsSync("/run/sshd"));

let folder: string;
let knownHosts: string;
let identity: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-ssh-"));
  knownHosts = join(folder, "known_hosts");
  identity = join(folder, "id");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", identity]);
  await writeFile(knownHosts, "");
});
afterEach(() => rm(folder, { recursive: true, force: true }));

async function run(
  input: { host?: string; port?: number; argv?: string[] },
  options: SshOptions & { hosts: string[] },
) {
  using one = createTestContext({ hosts: options.hosts });
  const request = { host: "127.0.0.1", user: userInfo().username, argv: ["true"], ...input };
  return await createSshTools({ knownHosts, identity, ...options }).exec(
    create(SshExecRequestSchema, request),
    one.context,
  );
}

describe("ssh.exec", () => {
  test.each([
    ["a host that was not named", "other.example", 22],
    ["this machine", "127.0.0.1", 22],
    ["another port of a named host", "10.1.2.3", 2222],
  ])("connects to nothing but what the owner named: %s", async (_, host, port) => {
    const { reason, metadata } = await faultOf(run({ host, port }, { hosts: ["10.1.2.3"] }));
    expect([reason, metadata.field]).toEqual([ErrorReason.HOST_NOT_GRANTED, "host"]);
  });

  test("connects to no named host that stands for an address that was not named", async () => {
    const resolve: Resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    const refused = faultOf(run({ host: "a.example" }, { hosts: ["a.example"], resolve }));
    expect((await refused).reason).toBe(ErrorReason.HOST_NOT_GRANTED);
  });

  test("says why ssh itself failed", async () => {
    const closed = createServer((socket: Socket) => socket.destroy());
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as { port: number };
    const { reason, metadata } = await faultOf(run({ port }, { hosts: [`127.0.0.1:${port}`] }));
    expect([reason, metadata.exit_code]).toEqual([ErrorReason.TOOL_FAILED, "255"]);
    await new Promise((resolve) => closed.close(resolve));
  });
});

describe.skipIf(!HAS_SERVER)("ssh.exec with a server", () => {
  let server: ReturnType<typeof spawn>;
  let port: number;
  let hostKey: string;
  beforeEach(async () => {
    port = await freePort();
    const key = join(folder, "host");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    hostKey = (await readFile(`${key}.pub`, "utf8")).split(" ").slice(0, 2).join(" ");
    const config = {
      ListenAddress: "127.0.0.1",
      Port: String(port),
      HostKey: key,
      AuthorizedKeysFile: `${identity}.pub`,
      PidFile: "none",
      StrictModes: "no",
      UsePAM: "no",
      PermitRootLogin: "prohibit-password",
    };
    const options = Object.entries(config).flatMap(([name, value]) => ["-o", `${name}=${value}`]);
    server = spawn(SSHD, ["-D", "-e", "-f", "/dev/null", ...options], { stdio: "ignore" });
    await accepts(port);
  });
  afterEach(() => void server.kill());

  const hosts = () => [`127.0.0.1:${port}`];
  const know = (name = `[127.0.0.1]:${port}`, key = hostKey) => writeFile(knownHosts, `${name} ${key}\n`);

  test("runs a program with its arguments as they are", async () => {
    await know();
    const argv = ["printf", "%s|", "a b", "$(id)", "it's", "*", '"', "-n", ""];
    const found = await run({ port, argv }, { hosts: hosts() });
    expect(found).toMatchObject({ exitCode: 0, stdout: "a b|$(id)|it's|*|\"|-n||", stderr: "" });
    expect(await run({ port, argv: ["sh", "-c", "echo no >&2; exit 3"] }, { hosts: hosts() })).toMatchObject({
      exitCode: 3,
      stderr: "no\n",
    });
  });

  test("runs nothing where the host's key is not known, and learns none", async () => {
    const marker = join(folder, "ran");
    const { reason, message } = await faultOf(run({ port, argv: ["touch", marker] }, { hosts: hosts() }));
    expect([reason, message]).toEqual([ErrorReason.TOOL_FAILED, expect.stringContaining("verification failed")]);
    expect([existsSync(marker), await readFile(knownHosts, "utf8")]).toEqual([false, ""]);
  });

  test("runs nothing where the host shows another key", async () => {
    const other = (await readFile(`${identity}.pub`, "utf8")).split(" ").slice(0, 2).join(" ");
    await know(undefined, other);
    const marker = join(folder, "ran");
    const { message } = await faultOf(run({ port, argv: ["touch", marker] }, { hosts: hosts() }));
    expect(message).toContain("verification failed");
    expect(existsSync(marker)).toBe(false);
  });

  test("asks known_hosts for the name that was called, at the address that was checked", async () => {
    await know(`[a.example]:${port}`);
    const resolve: Resolve = async () => [{ address: "127.0.0.1", family: 4 }];
    const named = [`a.example:${port}`, "127.0.0.1"];
    const found = await run({ host: "a.example", port, argv: ["echo", "here"] }, { hosts: named, resolve });
    expect(found.stdout).toBe("here\n");
  });

  test("asks for no password", async () => {
    await know();
    const other = join(folder, "other");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", other]);
    const { message } = await faultOf(run({ port }, { hosts: hosts(), identity: other }));
    expect(message).toContain("Permission denied");
  });
});

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as { port: number };
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function accepts(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries++) {
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise<boolean>((resolve) => {
      socket.once("connect", () => resolve(true));
      socket.once("error", () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("the SSH server does not listen");
}
