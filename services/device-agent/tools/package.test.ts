import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { InstallRequestSchema, SearchRequestSchema } from "../../../gen/ts/reeve/tools/v1/package_pb.ts";
import { PACKAGE_MANAGERS } from "./package/managers.ts";
import { packageTools } from "./package.ts";
import { createTestContext, faultOf } from "./testing/context.ts";

const HAS_APT = existsSync("/usr/bin/apt-get") && existsSync("/usr/bin/apt-cache");

const manager = (name: string) => PACKAGE_MANAGERS.find((each) => each.name === name) ?? expect.fail(name);

describe("argument lists", () => {
  it.each([
    ["apt", "apt-get install -y --no-remove -- a b", "apt-get install -y --no-remove -s -- a b"],
    ["dnf", "dnf install -y -- a b", "dnf install --assumeno -- a b"],
    ["apk", "apk add --no-interactive -- a b", "apk add --no-interactive --simulate -- a b"],
    ["pacman", "pacman -S --noconfirm --needed -- a b", "pacman -S --noconfirm --needed --print -- a b"],
    ["brew", "brew install -- a b", "brew install --dry-run -- a b"],
  ])("%s installs", (name, real, dry) => {
    expect(manager(name).install(["a", "b"], false).join(" ")).toBe(real);
    expect(manager(name).install(["a", "b"], true).join(" ")).toBe(dry);
  });

  it.each([
    ["apt", ["apt-cache", "search", "--", "g[+][+]", "x"]],
    ["dnf", ["dnf", "-q", "search", "--", "g++", "x"]],
    ["apk", ["apk", "search", "-v", "-d", "--", "g++", "x"]],
    ["pacman", ["pacman", "-Ss", "--color", "never", "--", "g\\+\\+", "x"]],
    ["brew", ["brew", "search", "--", "g++ x"]],
  ])("%s searches", (name, argv) => {
    expect(manager(name).search(["g++", "x"])).toEqual(argv);
  });
});

describe("answers", () => {
  it.each([
    [
      "apt",
      "ripgrep - Recursively searches - fast\nfd-find - Simple find\n",
      ["ripgrep", "Recursively searches - fast"],
    ],
    [
      "dnf",
      "=== Name Matched: rip ===\nripgrep.x86_64 : Line oriented\nripgrep.i686 : Line oriented\n",
      ["ripgrep", "Line oriented"],
    ],
    ["dnf", "Matched fields: name\n ripgrep.x86_64\tLine oriented\n", ["ripgrep", "Line oriented"]],
    ["apk", "ripgrep-14.1.0-r0 - ripgrep recursively searches\n", ["ripgrep", "ripgrep recursively searches"]],
    ["pacman", "extra/ripgrep 14.1.0-1 [installed]\n    A search tool\n", ["ripgrep", "A search tool"]],
    ["brew", "==> Formulae\nripgrep ripgrep-all\n\n==> Casks\nrip\n", ["ripgrep", ""]],
  ])("of %s are read", (name, output, [first, summary]) => {
    expect(manager(name).parse(output)[0]).toEqual({ name: first, summary });
    expect(manager(name).parse("")).toEqual([]);
  });
});

it("refuses a name that would remove a package", async () => {
  using test = createTestContext();
  const input = create(InstallRequestSchema, { packages: ["bash", "coreutils-"], dryRun: true });
  expect(await faultOf(packageTools.install(input, test.context))).toMatchObject({
    reason: ErrorReason.INVALID_INPUT,
    metadata: { field: "packages[1]" },
  });
});

it("says which programs are missing", async () => {
  using test = createTestContext({ env: { PATH: "/nonexistent" } });
  const input = create(SearchRequestSchema, { query: "bash" });
  expect(await faultOf(packageTools.search(input, test.context))).toMatchObject({
    reason: ErrorReason.NOT_AVAILABLE,
    metadata: { tool: "pkg.search", program: "apt-cache, dnf, apk, pacman, brew" },
  });
});

describe("with a manager that answers", () => {
  it("takes the first that the machine has, and none for an empty search", async () => {
    const bin = mkdtempSync(join(tmpdir(), "reeve-bin-"));
    writeFileSync(join(bin, "pacman"), "#!/bin/sh\nexit 1\n");
    chmodSync(join(bin, "pacman"), 0o755);
    using other = createTestContext({ env: { PATH: bin } });
    const answer = await packageTools.search(create(SearchRequestSchema, { query: "x" }), other.context);
    expect(answer).toEqual({ manager: "pacman", packages: [], truncated: false });
    rmSync(bin, { recursive: true });
  });
});

describe.runIf(HAS_APT)("apt on this machine", () => {
  it("finds packages", async () => {
    using test = createTestContext();
    const answer = await packageTools.search(
      create(SearchRequestSchema, { query: "bash", maxResults: 3 }),
      test.context,
    );
    expect(answer.manager).toBe("apt");
    expect(answer.packages?.length).toBeLessThanOrEqual(3);
  });

  it("says what it would install", async () => {
    using test = createTestContext();
    const input = create(InstallRequestSchema, { packages: ["bash"], dryRun: true });
    const answer = await packageTools.install(input, test.context);
    expect(answer).toMatchObject({ manager: "apt", exitCode: 0 });
    expect(answer.output).toContain("bash");
  });

  it("returns the exit code and words of an install that fails", async () => {
    using test = createTestContext();
    const input = create(InstallRequestSchema, { packages: ["no-such-package-at-all"], dryRun: true });
    const answer = await packageTools.install(input, test.context);
    expect(answer.exitCode).toBe(100);
    expect(answer.output).toContain("Unable to locate package");
  });
});
