import { createEcmaScriptPlugin, runNodeJs, type Schema } from "@bufbuild/protoplugin";
import { describeTools } from "../lib/toolschema/catalogue.ts";

/** The protoc plugin that writes the tool catalogue. Fails, naming the RPCs, where a tool's definition is not whole. */
const plugin = createEcmaScriptPlugin({
  name: "protoc-gen-tools",
  version: "v1",
  generateTs: generateCatalogue,
});

function generateCatalogue(schema: Schema): void {
  const { catalogue, problems } = describeTools(schema.files, schema.allFiles);
  if (problems.length > 0) throw new Error(`\n${problems.join("\n")}`);
  // buf runs a plugin once for each input, and only one of them defines tools.
  if (catalogue.tools.length === 0) return;
  schema.generateFile("catalogue.json").print(JSON.stringify(catalogue, null, 2));
}

runNodeJs(plugin);
