import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseEnvelope, textIn } from "../../lib/owner-manifest/envelope.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { manifestFile, readManifestFile, requireManifest } from "./manifest-file.ts";
import { openOwnerKey } from "./owner-key.ts";
import { requireCurrent, type SignFlags, writeSigned } from "./sign.ts";
import { raisedVersion, templateText } from "./template.ts";

/** Opens a file in a person's editor, and resolves when they have closed it. */
export type Editor = (path: string) => Promise<void>;

/**
 * `reeve manifest edit`: opens the text of a signed manifest in the person's editor, with the next version, and signs what they
 * make of it. A text that is not valid is not signed, and is kept to go on with. Begins with the settings where there is no file.
 */
export async function edit(
  named: string | undefined,
  flags: SignFlags,
  context: CommandContext,
  open: Editor = editorOf(context),
): Promise<void> {
  const out = manifestFile(flags.out ?? named, context);
  const before = existsSync(out) ? textIn(parseEnvelope(await readManifestFile(out)).payload) : undefined;
  const start =
    before === undefined ? templateText(context) : raisedVersion(before, requireManifest(before, out).version);
  const folder = await mkdtemp(join(tmpdir(), "reeve-manifest-"));
  const draft = join(folder, "manifest.yaml");
  await writeFile(draft, start, { mode: 0o600 });
  await open(draft);
  const text = await readFile(draft, "utf8");
  if (before !== undefined && (text === start || text === before)) {
    await rm(folder, { recursive: true });
    return void context.stderr.write("reeve: nothing was changed, and nothing signed\n");
  }
  try {
    requireCurrent(text, draft, context);
  } catch (error: unknown) {
    if (!(error instanceof UsageError)) throw error;
    throw new UsageError(error.message, [`the draft is kept: reeve manifest sign ${draft} --out ${out}`], {
      cause: error,
    });
  }
  await writeSigned(
    { text, source: draft, out, key: await openOwnerKey(flags, context) },
    flags.json === true,
    context,
  );
  await rm(folder, { recursive: true });
}

/** The editor of the environment, as git chooses it. It has the terminal until it ends. */
function editorOf({ env }: CommandContext): Editor {
  const words = (env.VISUAL || env.EDITOR || "vi").split(" ").filter((word) => word !== "");
  const [program = "vi", ...args] = words;
  return async (path) => {
    const { status, error } = spawnSync(program, [...args, path], { stdio: "inherit" });
    if (error !== undefined || status !== 0)
      throw new UsageError(
        `the editor ${program} did not end well: nothing was signed`,
        [`the draft is kept: ${path}`],
        {
          cause: error,
        },
      );
  };
}
