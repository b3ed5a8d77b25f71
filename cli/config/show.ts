import type { JsonObject } from "@bufbuild/protobuf";
import { withFileValues } from "../../lib/config/config-file.ts";
import { type ConfigKey, defaultText, expectedOf } from "../../lib/config/config-key.ts";
import type { CommandContext } from "../command-context.ts";
import { helpBlock } from "../flags/help.ts";
import { jsonDocument } from "../print/json.ts";
import { styleFor } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import { type FoundConfig, fileKeys } from "./config-file.ts";

export interface ShowFlags {
  all?: true;
  docs?: true;
  json?: true;
}

/** One setting, as it stands here. */
interface Shown {
  key: ConfigKey;
  value: string;
  source: string;
}

/** `reeve config show`: what is set, and where. A flag of a command goes over all of it. */
export function showConfig(file: FoundConfig | undefined, flags: ShowFlags, context: CommandContext): void {
  const shown = fileKeys.map((key) => settingHere(key, file, context.env));
  const wanted = flags.all || flags.docs ? shown : shown.filter(({ source }) => source !== "default" && source !== "");
  if (flags.json) {
    const settings = wanted.map(settingJson);
    return void context.stdout.write(jsonDocument({ file: file?.path ?? null, settings }));
  }
  if (flags.docs) {
    writeDocs(wanted, context);
    return;
  }
  const rows = wanted.map(({ key, value, source }) => [key.at ?? "", value, source]);
  context.stdout.write(listTable(["SETTING", "VALUE", "SOURCE"], rows, context, { keep: ["SETTING"] }));
  const rest = shown.length - wanted.length;
  context.stderr.write(
    `reeve: ${file === undefined ? "there is no configuration file" : `configuration file ${file.path}`}` +
      `${rest > 0 ? `; ${rest} settings have their default or none: --all` : ""}\n`,
  );
}

function settingHere(key: ConfigKey, file: FoundConfig | undefined, env: CommandContext["env"]): Shown {
  const inFile = file?.values.get(key.name);
  const text = withFileValues(env, file?.values ?? new Map())[key.name];
  if (text) {
    const source = env[key.name] ? `environment ${key.name}` : `${file?.path}:${inFile?.line}`;
    return { key, value: key.secret ? "[secret]" : text, source };
  }
  const standard = defaultText(key);
  return { key, value: standard ?? "", source: standard ? "default" : "" };
}

function settingJson({ key, value, source }: Shown): JsonObject {
  return {
    setting: key.at ?? "",
    variable: key.name,
    value: source === "" ? null : value,
    source: source === "" ? "unset" : source,
    doc: key.doc,
    expected: expectedOf(key),
    secret: key.secret === true,
  };
}

function writeDocs(shown: readonly Shown[], context: CommandContext): void {
  const style = styleFor(context, context.stdout);
  const entries = shown.map(({ key }) => {
    const standard = defaultText(key);
    const rest = standard ? ` Default ${standard}.` : "";
    return { term: key.at ?? "", text: `${key.doc}${rest} (${expectedOf(key)}; ${key.name})` };
  });
  context.stdout.write(helpBlock(entries, Math.min(context.stdout.columns ?? 120, 120), style));
}
