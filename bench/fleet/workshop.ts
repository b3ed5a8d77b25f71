import { createSecretKey, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Validator } from "@bufbuild/protovalidate";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { createLogger, type Logger } from "../../lib/log/log.ts";
import { loadCatalogue } from "../../lib/toolschema/catalogue-file.ts";
import type { OfferedTools } from "../../services/device-agent/execute/prepare.ts";
import { warmValidator } from "../../services/device-agent/execute/warm-validator.ts";
import type { Executor } from "../../services/device-agent/executor/executor.ts";
import { createLocalExecutor } from "../../services/device-agent/executor/local.ts";
import { type Ledger, openLedger } from "../../services/device-agent/ledger/ledger.ts";
import { createRoots, type Roots } from "../../services/device-agent/roots/roots.ts";
import { createToolTable } from "../../services/device-agent/tools/index.ts";

/** What the simulated devices of one process share, where a real device has its own. */
export interface Workshop {
  /** In memory: a thousand files that are synced to one disk would measure the disk. */
  ledger: Ledger;
  executor: Executor;
  roots: Roots;
  offered: OfferedTools;
  validator: Validator;
  /** By tool: the digest of its input schema, in hex. */
  schemaDigests: ReadonlyMap<string, string>;
  logger: Logger;
  close(): Promise<void>;
}

/** Opens one. Its devices offer nothing but device.ping. */
export async function openWorkshop(): Promise<Workshop> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-fleet-"));
  const known = createToolTable();
  const tools = new Map([...known].filter(([name]) => name === "device.ping"));
  const ledger = await openLedger(":memory:", sealerWith(createSecretKey(randomBytes(32))));
  const roots = createRoots({ read: [folder], write: [], workDir: folder });
  return {
    ledger,
    executor: createLocalExecutor({ env: process.env }),
    roots,
    offered: { tools, known, unavailable: new Map() },
    validator: warmValidator(tools.values()),
    schemaDigests: new Map(loadCatalogue().tools.map((tool) => [tool.name, tool.schemaDigest])),
    logger: createLogger({ service: "fleet", level: "silent" }),
    async close() {
      await ledger.close();
      roots[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
