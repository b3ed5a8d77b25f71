import { watchPostgres } from "./watch-postgres.ts";
import { watchSqlite } from "./watch-sqlite.ts";

// Before any other module: what reaches the disk is watched from the first statement on.
watchSqlite();
watchPostgres();
