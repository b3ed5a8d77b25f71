import { dirname } from "node:path";

/** The folder that holds package.json. */
export const repositoryRoot = dirname(import.meta.dirname);
