import { cpSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { isRunning } from "../../testkit/programs.ts";
import { type AgentProcess, type ControlPlaneMachine, startAgent, startControlPlaneMachine } from "./machines.ts";

let plane: ControlPlaneMachine;
let home = "";
const agents: AgentProcess[] = [];

beforeAll(async () => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "reeve-machine-")));
  plane = await startControlPlaneMachine();
});
afterAll(async () => {
  for (const agent of agents) await agent.stop();
  await plane?.close();
  rmSync(home, { recursive: true, force: true });
});

const machine = (options: { token?: string; words?: string[] } = {}) => {
  const agent = startAgent(home, options.words, options);
  agents.push(agent);
  return agent;
};
/** A token, as the operator gets it. */
const invite = async (...words: string[]) => {
  const { stdout, stderr } = await plane.reeve("device", "join-token", "web1", "--label", "role=web", ...words);
  expect(stderr).toContain("not shown again");
  return stdout.trim();
};
const call = () => plane.reeve("call", "web1", "exec", "--argv", "uname", "--argv=-s");
const link = async () => {
  const { stdout } = await plane.reeve("device", "list", "--json");
  const { devices } = JSON.parse(stdout) as { devices: { name: string; link: string }[] };
  return devices.find(({ name }) => name === "web1")?.link;
};
const shown = async (callId: string) => JSON.parse((await plane.reeve("call", "show", callId, "--json")).stdout);
/** A call that runs until it is ended; `pid` is its program's. */
const startCall = (callId: string) => {
  const file = join(home, `${callId}.pid`);
  const program = `echo $$ > ${file}.new; mv ${file}.new ${file}; exec sleep 600`;
  return {
    ended: plane.reeve("call", "web1", "exec", "--call-id", callId, "--", "sh", "-c", program),
    pid: eventually(() => Number(readFileSync(file, "utf8"))),
  };
};
const online = () => eventually(async () => expect(await link()).toBe("LINK_STATE_ONLINE"));
const enrollmentStatus = async () => {
  const { stdout } = await plane.reeve("enrollment", "list", "--json");
  return (JSON.parse(stdout) as { enrollments: { state: string; why: string }[] }).enrollments[0];
};

test("from nothing: a token, a fingerprint that is compared, and a governed call on another machine", async () => {
  const token = await invite();
  const agent = machine({ token, words: ["--read", home] });
  const fingerprint = await agent.shown(/([0-9A-F]{2}:){31}[0-9A-F]{2}/);
  expect(agent.text()).toContain("reeve enrollment confirm enr-");
  // What every user of the machine can read.
  for (const file of ["cmdline", "environ"]) {
    expect(readFileSync(`/proc/${agent.pid}/${file}`, "utf8")).not.toContain(token);
  }
  expect((await plane.reeve("enrollment", "list", "--state", "pending")).stdout).toContain("web1");
  const confirmed = await plane.reeve("enrollment", "confirm", "web1", "--fingerprint", fingerprint);
  expect(confirmed).toMatchObject({ code: 0 });
  await agent.shown('"msg":"attached"');
  await online();
  expect(await call()).toMatchObject({ code: 0, stdout: "Linux\n" });
  // The keys that it pinned are of the newest version: it was sent none to follow to.
  const files = readdirSync(home, { recursive: true, encoding: "utf8" });
  expect(files.some((name) => name.endsWith("device.key"))).toBe(true);
  expect(files.filter((name) => name.endsWith("grant-keys.json"))).toEqual([]);
  const { stdout } = await plane.reeve("audit", "list", "--json");
  for (const change of ["INVITED", "PENDING", "ENROLLED"])
    expect(stdout).toContain(`"DEVICE_IDENTITY_CHANGE_${change}"`);
});

test("it starts again with nothing but its folder", async () => {
  await agents.at(-1)?.stop();
  const agent = machine();
  await agent.shown('"msg":"attached"');
  await online();
  expect(await call()).toMatchObject({ code: 0, stdout: "Linux\n" });
});

test("locked, its stream ends and it learns why; unlocked, it is back by itself", async () => {
  const agent = agents.at(-1);
  expect(await plane.reeve("device", "lock", "web1", "--why", "lost")).toMatchObject({ code: 0 });
  await eventually(async () => expect(await link()).not.toBe("LINK_STATE_ONLINE"));
  await agent?.shown("is locked (lost)");
  const refused = await call();
  expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining("web1 is locked (lost)") });
  expect(refused.stderr).toMatch(/is locked \(lost\) since 20\S+ by \S+; .*reeve device unlock web1/);
  const { stdout, stderr } = await plane.reeve("device", "list");
  expect(stdout).toMatch(/web1 .* locked /);
  expect(stderr).toMatch(/web1 is locked: lost, since .*, by \S+; `reeve device unlock web1`/);
  expect((await plane.reeve("enrollment", "list")).stdout).toMatch(/lost, since .*, by /);
  await plane.reeve("device", "unlock", "web1");
  await online();
  expect(await call()).toMatchObject({ code: 0 });
});

test("locked while it runs something: that ends on the device, and its caller learns why", async () => {
  const running = startCall("lock-running");
  const pid = await running.pid;
  expect(await plane.reeve("device", "lock", "web1", "--why", "taxi")).toMatchObject({ code: 0 });
  const { code, stderr } = await running.ended;
  expect([code, stderr]).toEqual([7, expect.stringContaining("web1 is locked (taxi)")]);
  await eventually(async () => expect(await isRunning(pid)).toBe(false));
  expect(await shown("lock-running")).toMatchObject({
    status: {
      state: "CALL_STATE_CANCELED",
      error: { reason: "ERROR_REASON_DEVICE_LOCKED", metadata: { why: "taxi" } },
      receipt: expect.anything(),
    },
  });
  await plane.reeve("device", "unlock", "web1");
  await online();
});

test("locked while it does not answer: its callers learn that the end is not known", async () => {
  const running = startCall("lock-silent");
  const pid = await running.pid;
  const agent = agents.at(-1);
  agent?.pause();
  try {
    expect(await plane.reeve("device", "lock", "web1", "--why", "silent")).toMatchObject({ code: 0 });
    const { code, stderr } = await running.ended;
    expect([code, stderr]).toEqual([8, expect.stringContaining("web1 is locked (silent)")]);
    expect(await shown("lock-silent")).toMatchObject({
      status: { state: "CALL_STATE_UNKNOWN", error: { reason: "ERROR_REASON_DEVICE_LOCKED" } },
    });
  } finally {
    agent?.resume();
    process.kill(pid, "SIGKILL");
  }
  await plane.reeve("device", "unlock", "web1");
  await online();
});

test("a copy of its folder locks it, and it enrolls again", async () => {
  const copy = realpathSync(mkdtempSync(join(tmpdir(), "reeve-copy-")));
  await agents.at(-1)?.stop();
  cpSync(home, copy, { recursive: true });
  const original = machine();
  await original.shown('"msg":"attached"');
  const clone = startAgent(copy);
  await clone.shown("two places");
  expect(await enrollmentStatus()).toMatchObject({ state: "ENROLLMENT_STATE_LOCKED" });
  await original.shown("two places");
  await clone.stop();
  await original.stop();

  const token = await invite("--replace", "--auto-confirm");
  await machine({ token }).shown('"msg":"attached"');
  await online();
  const late = startAgent(copy);
  await late.shown("revoked");
  await late.stop();
  rmSync(copy, { recursive: true });
  expect(await call()).toMatchObject({ code: 0 });
});

test("removed, it is refused for good", async () => {
  expect(await plane.reeve("device", "remove", "web1")).toMatchObject({ code: 0 });
  await agents.at(-1)?.shown("revoked");
  expect((await call()).code).toBe(2);
  expect(await plane.reeve("audit", "verify", "--db", plane.policyDatabase)).toMatchObject({
    code: 0,
  });
});
