import { createEcmaScriptPlugin, runNodeJs, type Schema } from "@bufbuild/protoplugin";
import { readSettings } from "./settings/read-settings.ts";
import { settingsSchema } from "./settings/settings-schema.ts";
import { settingsTable } from "./settings/settings-table.ts";

/**
 * The protoc plugin that writes, of the shape of the configuration file, the table that the services read their environment by
 * and the JSON Schema for editors. Fails, naming the fields, where a setting is not whole.
 */
const plugin = createEcmaScriptPlugin({ name: "protoc-gen-settings", version: "v1", generateTs: generate });

function generate(schema: Schema): void {
  const { settings, problems } = readSettings(schema.files, schema.allFiles);
  if (problems.length > 0) throw new Error(`\n${problems.join("\n")}`);
  // buf runs a plugin once for each input, and only one of them defines settings.
  if (settings === undefined) return;
  schema.generateFile("settings.ts").print(settingsTable(settings));
  schema.generateFile("config.schema.json").print(JSON.stringify(settingsSchema(settings), null, 2));
}

runNodeJs(plugin);
