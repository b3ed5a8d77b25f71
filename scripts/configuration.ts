import { writeFile } from "node:fs/promises";
import { CONFIGURATION_FILE, configurationText } from "./configuration/document.ts";

await writeFile(CONFIGURATION_FILE, configurationText());
