import { namesOf } from "./names.ts";

/** Extensions of files that are read by people and programs, and run by none because of where they lie. */
const EXTENSIONS = new Set(
  "txt text md markdown rst adoc csv tsv json jsonl ndjson log png jpg jpeg gif webp bmp".split(" "),
);

/** Names, without their extension, of files of these kinds that a program acts on: builds, editors, agents. */
const ACTED_ON = new Set(
  `package package-lock npm-shrinkwrap composer bower component deno bun turbo nx lerna rush project workspace angular
  vercel now firebase netlify tasks launch settings devcontainer extensions launchsettings appsettings global manifest
  mcp hooks plugin plugins renovate nodemon jest babel postcss cmakelists cmakepresets cmakeuserpresets vcpkg
  requirements constraints runtime authorized_keys
  agents agent claude gemini copilot-instructions skill skills memory cursor system-prompt`.split(/\s+/),
);

/** Parts of such names, such as "tsconfig.build" and "requirements-dev". */
const ACTED_ON_PARTS =
  /^(?:ts|js)config\b|\bconfig$|^requirements\b|^constraints\b|[.](?:instructions|prompt|chatmode|agent)$/;

/** Folders from which programs take files without being asked for each. */
const PICKED_UP = new Set(
  `bin sbin libexec shims node_modules bower_components site-packages dist-packages __pycache__ hooks objects refs
  cron.d cron.hourly cron.daily cron.weekly cron.monthly crontabs systemd autostart launchagents launchdaemons startup
  startupitems init.d rc.d profile.d conf.d`.split(/\s+/),
);

/** Folders of the operating system, by the first name of a path. */
const SYSTEM = /^(?:etc|usr|bin|sbin|lib.*|boot|opt|dev|proc|sys|library|system|applications)$/;

/** Characters that a reader does not see and some disks leave out of names. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/**
 * True for a path at which a new file is a document and nothing more: its extension is one of a short list, its name is
 * none that a build, an editor or an agent acts on, and it lies in no folder that begins with a dot, belongs to the
 * operating system, or is searched by programs. Anything that is not known harmless is no document. Case does not
 * count. False for a path that is not absolute or goes up.
 */
export function isDocument(path: string): boolean {
  const names = namesOf(path.toLowerCase().normalize("NFKC"));
  const last = names?.at(-1);
  if (names === undefined || last === undefined || path.split("/").includes("..") || UNSEEN.test(path)) return false;
  const folders = names.slice(0, -1);
  if (names.some((name) => name.startsWith(".")) || folders.some((name) => PICKED_UP.has(name))) return false;
  if (SYSTEM.test(names[0] ?? "") || /^(?:var\/spool|private\/etc)(?:\/|$)/.test(names.join("/"))) return false;
  const dot = last.lastIndexOf(".");
  const stem = last.slice(0, Math.max(0, dot));
  return dot > 0 && EXTENSIONS.has(last.slice(dot + 1)) && !ACTED_ON.has(stem) && !ACTED_ON_PARTS.test(stem);
}

/** Folders that hold programs which are found by their names. */
const PROGRAM_FOLDERS = new Set(["bin", "sbin", ".bin", "shims"]);

/** True for a path in a folder whose files are programs that are found by their names. Case does not count. */
export function isInProgramFolder(path: string): boolean {
  const names = namesOf(path.toLowerCase().normalize("NFKC")) ?? [];
  return names.slice(0, -1).some((name) => PROGRAM_FOLDERS.has(name));
}
