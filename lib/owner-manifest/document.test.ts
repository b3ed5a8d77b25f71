import { expect, test } from "vitest";
import { Mode, SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { readOwnerManifest } from "./document.ts";
import { expiryMs } from "./envelope.ts";

const HEAD = "version: 2\nexpire_time: 2027-01-01T12:00:00Z\ndevices: [laptop]\nmode: sudo\n";

function problemsOf(text: string): readonly { line: number; message: string }[] {
  const read = readOwnerManifest(text);
  return read.ok ? [] : read.problems;
}

test("a manifest is what its text says", () => {
  const digest = "ab".repeat(32);
  const read = readOwnerManifest(`# comments stay
${HEAD}capabilities: ["fs.*", shell.exec, "*", "printer:*"]
read_roots: [/srv]
write_roots: [/srv/work]
hosts: [api.example.com, "*.example.com", 10.0.0.0/8]
sandbox: workspace
plugins: { load: ${digest} }
environment: [LANG]
`);
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  expect(read.manifest).toMatchObject({
    version: 2n,
    mode: Mode.SUDO,
    sandbox: SandboxLevel.WORKSPACE,
    plugins: [{ name: "load", digest }],
    environment: ["LANG"],
    readRoots: ["/srv"],
    nextKeys: [],
  });
  expect(expiryMs(read.manifest)).toBe(Date.parse("2027-01-01T12:00:00Z"));
});

test("what is not named is not granted", () => {
  const read = readOwnerManifest(HEAD);
  if (!read.ok) throw new Error("refused");
  const { capabilities, readRoots, writeRoots, hosts, plugins, environment, sandbox } = read.manifest;
  expect([capabilities, readRoots, writeRoots, hosts, plugins, environment]).toEqual([[], [], [], [], [], []]);
  expect(sandbox).toBe(SandboxLevel.NONE);
});

test.each([
  ["capabilites: []", 5, 'did you mean "capabilities"?'],
  ["capabilities: ['fs*']", 5, "is not a capability"],
  ["read_roots: [srv]", 5, "is not an absolute path"],
  ["sandbox: strong", 5, "sandbox must be one of none, workspace, read_only"],
  ["plugins: { load: abc }", 5, 'the digest of "load" must have 64 hex digits'],
  ["environment: ['A B']", 5, "is not the name of a variable"],
  ["next_keys: [abc]", 5, "is no public key"],
  ["hosts: ['Example.com']", 5, "in small letters"],
])("%s is a problem with its line", (line, at, message) => {
  expect(problemsOf(HEAD + line)[0]).toEqual({ line: at, message: expect.stringContaining(message) });
});

test.each([
  ["version: 2", "version is missing"],
  ["expire_time: 2027-01-01T12:00:00Z", "expire_time is missing"],
  ["devices: [laptop]", "devices is missing"],
  ["mode: sudo", "mode is missing"],
])("without %s it is refused", (line, message) => {
  expect(problemsOf(HEAD.replace(`${line}\n`, "")).map((one) => one.message)).toEqual([message]);
});

test.each([
  ["version: 0", "version: 2", "version must be a whole number from 1"],
  ["expire_time: soon", "expire_time: 2027-01-01T12:00:00Z", "expire_time must be a time in UTC"],
  ["expire_time: 2027-13-01", "expire_time: 2027-01-01T12:00:00Z", "expire_time must be a time in UTC"],
  ["devices: []", "devices: [laptop]", "at least one"],
  ["mode: root", "mode: sudo", "mode must be one of user, sudo, all"],
])("%s is refused", (line, instead, message) => {
  expect(problemsOf(HEAD.replace(instead, line))[0]?.message).toContain(message);
});
