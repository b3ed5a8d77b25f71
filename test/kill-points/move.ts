import { openOneDatabase } from "../../cli/stack/one-database.ts";
import { createLogger } from "../../lib/log/log.ts";

// Opens the one database of a data folder, as `reeve up` does before anything else.
const one = await openOneDatabase(process.argv[2] ?? "", createLogger({ service: "test", level: "error" }));
await one.close();
