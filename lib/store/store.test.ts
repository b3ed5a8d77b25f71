import { databaseConformance } from "./testdata/conformance.ts";
import { groupCommitConformance } from "./testdata/group-commit-conformance.ts";
import { STORE_KINDS } from "./testdata/stores.ts";

for (const kind of STORE_KINDS) {
  databaseConformance(kind);
  groupCommitConformance(kind);
}
