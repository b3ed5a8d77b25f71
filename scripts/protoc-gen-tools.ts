import { createEcmaScriptPlugin, runNodeJs, type Schema } from "@bufbuild/protoplugin";
import { describeTools } from "../lib/toolschema/catalog.ts";

/** The protoc plugin that writes the tool catalog. Fails, naming the RPCs, where a tool's definition is not whole. */
const plugin = createEcmaScriptPlugin({
  name: "protoc-gen-tools",
  version: "v1",
  generateTs: generateCatalog,
});

function generateCatalog(schema: Schema): void {
  const { catalog, problems } = describeTools(schema.files, schema.allFiles);
  if (problems.length > 0) throw new Error(`\n${problems.join("\n")}`);
  // buf runs a plugin once for each input, and only one of them defines tools.
  if (catalog.tools.length === 0) return;
  schema.generateFile("catalog.json").print(JSON.stringify(catalog, null, 2));
}

runNodeJs(plugin);
