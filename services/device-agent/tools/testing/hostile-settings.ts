import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** What a program that a repository plants prints, and the name of the file that it leaves. */
export const MARK = "ran-on-its-own";

/** Where a hostile repository's settings may lead. */
export interface Planted {
  /** A program that says that it ran, in every way that could be seen from outside. */
  program: string;
  /** The folder that it lies in and leaves its file in. */
  folder: string;
}

/** Writes the program that settings and hooks name. */
export function plant(folder: string): Planted {
  const program = join(folder, "planted.sh");
  const mark = join(folder, MARK);
  writeFileSync(program, `#!/bin/sh\necho ${MARK}\necho ${MARK} >&2\ntouch '${mark}'\n`, { mode: 0o755 });
  return { program, folder };
}

/** Settings of a repository that make git run a program or act elsewhere, with a value that would show it. */
export const HOSTILE_SETTINGS: readonly (readonly [string, (planted: Planted) => string])[] = [
  ["core.fsmonitor", ({ program }) => program],
  ["core.hooksPath", ({ folder }) => folder],
  ["core.pager", ({ program }) => program],
  ["pager.log", ({ program }) => program],
  ["core.editor", ({ program }) => program],
  ["core.sshCommand", ({ program }) => program],
  ["core.askPass", ({ program }) => program],
  ["core.gitProxy", ({ program }) => program],
  ["core.alternateRefsCommand", ({ program }) => program],
  ["core.attributesFile", () => "/srv/attributes"],
  ["core.worktree", ({ folder }) => folder],
  ["diff.external", ({ program }) => program],
  ["diff.own.command", ({ program }) => program],
  ["diff.own.textconv", ({ program }) => program],
  ["filter.own.clean", ({ program }) => program],
  ["filter.own.smudge", ({ program }) => program],
  ["filter.own.process", ({ program }) => program],
  ["merge.own.driver", ({ program }) => program],
  ["gpg.program", ({ program }) => program],
  ["gpg.ssh.defaultKeyCommand", ({ program }) => program],
  ["commit.gpgSign", () => "true"],
  ["commit.template", () => "/srv/template"],
  ["credential.helper", ({ program }) => `!${program}`],
  ["alias.status", ({ program }) => `!${program}`],
  ["include.path", ({ folder }) => join(folder, "other-config")],
  ["includeIf.gitdir:/.path", ({ folder }) => join(folder, "other-config")],
  ["remote.origin.vcs", () => "ext"],
  ["remote.origin.uploadpack", ({ program }) => program],
  ["remote.origin.receivepack", ({ program }) => program],
  ["uploadpack.packObjectsHook", ({ program }) => program],
  ["gc.recentObjectsHook", ({ program }) => program],
  ["trailer.own.command", ({ program }) => program],
  ["interactive.diffFilter", ({ program }) => program],
  ["sequence.editor", ({ program }) => program],
  ["submodule.own.update", ({ program }) => `!${program}`],
  ["protocol.ext.allow", () => "always"],
  ["url.x.insteadOf", () => "https://"],
  ["http.proxy", () => "http://127.0.0.1:1"],
];

/** Hooks of which git runs one at nearly everything that it does. */
export const HOOKS: readonly string[] =
  "pre-commit prepare-commit-msg commit-msg post-commit pre-push pre-auto-gc post-checkout post-merge post-rewrite post-index-change fsmonitor-watchman query-watchman reference-transaction update post-update pre-receive".split(
    " ",
  );
