import { join } from "node:path";
import type { Finding } from "../../../lib/audit-verify/finding.ts";
import { openLogDatabase } from "../../../lib/audit-verify/log-database.ts";
import { verifyLog } from "../../../lib/audit-verify/verify.ts";
import { startTestPolicy, type TestPolicy } from "./test-policy.ts";

/** Starts another replica: its own folder, the same database and sealing key. */
export function startReplica(of: TestPolicy, options: Parameters<typeof startTestPolicy>[0] = {}): Promise<TestPolicy> {
  if (of.databaseUrl === undefined) throw new Error("replicas share a PostgreSQL database");
  const sealingKeyFile = join(of.stateDir, "sealing.key");
  return startTestPolicy({ ...options, databaseUrl: of.databaseUrl, sealingKeyFile });
}

/** What is wrong with the log in the database of a policy; how long it is. */
export async function verifyDatabase(
  policy: { databaseUrl: string | undefined; service: { checkpointKey: string } },
  verifierKey: string = policy.service.checkpointKey,
): Promise<{ findings: Finding[]; size: number; signed: number; checkpoints: number }> {
  const { source, close } = await openLogDatabase(policy.databaseUrl ?? "");
  try {
    return await verifyLog(source, { verifierKey });
  } finally {
    await close();
  }
}
