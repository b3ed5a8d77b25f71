import { describe, expect, it } from "vitest";
import { isDocument, isInProgramFolder } from "./documents.ts";
import { isHidden } from "./hidden-paths.ts";

describe("a document", () => {
  it.each([
    "/srv/report.txt",
    "/home/me/work/Ergebnis für März.MD",
    "/tmp/out/data.json",
    "/srv/a/b/../c.log".replace("/b/..", ""),
    "/srv/table.csv",
    "/srv/plot.v2.png",
  ])("is %s", (path) => expect(isDocument(path)).toBe(true));

  it.each([
    // Builds, tests and start-up files.
    ..."Makefile GNUmakefile rules.mk CMakeLists.txt package.json PACKAGE.JSON setup.py conftest.py".split(" "),
    ..."sitecustomize.py usercustomize.py a.pth build.rs Cargo.toml build.gradle Rakefile Gemfile Dockerfile".split(
      " ",
    ),
    ..."docker-compose.yml compose.yaml tsconfig.json tsconfig.build.json jest.config.json requirements.txt".split(" "),
    ..."requirements-dev.txt index.js mod.mjs run.sh tool.pl lib.rb libx.so libx.so.1 a.service a.timer a.desktop".split(
      " ",
    ),
    ..."crontab a.plist a.html a.svg a.pdf noext .hidden.txt .txt report.txt. AGENTS.md CLAUDE.md SKILL.md".split(" "),
    ..."copilot.instructions.md HEAD config objects".split(" "),
  ])("is not %s", (name) => expect(isDocument(`/srv/${name}`)).toBe(false));

  it.each([
    "/srv/app/.git/description.txt",
    "/srv/app/.github/notes.md",
    "/srv/app/node_modules/x/a.json",
    "/srv/venv/lib/python3/site-packages/a.txt",
    "/srv/repo/hooks/a.txt",
    "/home/me/bin/a.txt",
    "/etc/motd.txt",
    "//etc/motd.txt",
    "/srv/../etc/motd.txt",
    "/ETC/motd.txt",
    "/private/etc/a.txt",
    "/var/spool/a.txt",
    "/srv/no\u200bde_modules/a.json",
    "/srv/a\n.txt",
    "srv/a.txt",
    "/",
    "",
  ])("is not at %j", (path) => expect(isDocument(path)).toBe(false));
});

it("knows folders of programs in any spelling", () => {
  const inside = [
    "/home/me/bin/ls",
    "/home/me/.local/BIN/a/b",
    "/a/./sbin//x",
    "/a/node_modules/.bin/tsc",
    "/a/ｂｉｎ/x",
  ];
  expect(inside.filter((path) => !isInProgramFolder(path))).toEqual([]);
  const outside = ["/home/me/bin", "/srv/bin.txt", "/srv/binary/x", "/srv/bin/../x"];
  expect(outside.filter(isInProgramFolder)).toEqual([]);
});

describe("a hidden path", () => {
  it("has a name with a dot below the granted folder, but for a project's own settings", () => {
    const roots = ["/home/me", "/home/me/.work"];
    const hidden = [
      "/home/me/.bashrc",
      "/home/me/a/.git/config",
      "/home/me/.work/.env",
      "/home/me/./.x",
      "/other/.x",
      ".x",
    ];
    expect(hidden.filter((path) => !isHidden(path, roots))).toEqual([]);
    const shown = ["/home/me/a/.gitignore", "/home/me/.github/x.yml", "/home/me/.work/notes", "/home/me/a.b"];
    expect(shown.filter((path) => isHidden(path, roots))).toEqual([]);
  });
});
