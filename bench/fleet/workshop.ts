import { createSecretKey, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sealerWith } from "../../lib/identity/sealer.ts";
import { createLogger, type Logger } from "../../lib/log/log.ts";
import { DEFAULT_OUTPUT_LIMITS } from "../../services/device-agent/config.ts";
import type { OfferedTools } from "../../services/device-agent/execute/prepare.ts";
import type { Executor } from "../../services/device-agent/executor/executor.ts";
import { createLocalExecutor } from "../../services/device-agent/executor/local.ts";
import { type Ledger, openLedger } from "../../services/device-agent/ledger/ledger.ts";
import { openOutputFolder } from "../../services/device-agent/output/output-folder.ts";
import { createOutputs, type Outputs } from "../../services/device-agent/output/outputs.ts";
import { createToolTable } from "../../services/device-agent/providers/builtin/provider.ts";
import { createRoots, type Roots } from "../../services/device-agent/roots/roots.ts";
import { openUndoJournal, type UndoJournal } from "../../services/device-agent/undo/journal.ts";

/** What the simulated devices of one process share, where a real device has its own. */
export interface Workshop {
  /** In memory: a thousand files that are synced to one disk would measure the disk. */
  ledger: Ledger;
  outputs: Outputs;
  executor: Executor;
  roots: Roots;
  undo: UndoJournal;
  offered: Omit<OfferedTools, "manifestDigest">;
  logger: Logger;
  close(): Promise<void>;
}

/** Opens one. Its devices offer nothing but device.ping. */
export async function openWorkshop(): Promise<Workshop> {
  const folder = mkdtempSync(join(tmpdir(), "reeve-fleet-"));
  const builtIn = createToolTable()
    .values()
    .map(({ tool }) => tool)
    .toArray();
  const known = new Map(builtIn.map(({ spec }) => [spec.name, spec]));
  const tools = new Map(
    builtIn.filter(({ spec }) => spec.name === "device.ping").map((tool) => [tool.spec.name, tool]),
  );
  const sealer = sealerWith(createSecretKey(randomBytes(32)));
  const ledger = await openLedger(":memory:", sealer);
  const undo = openUndoJournal({ folder: join(folder, "undo"), sealer, now: Date.now });
  const onError = (error: unknown): never => {
    throw error;
  };
  const kept = openOutputFolder(join(folder, "output"), DEFAULT_OUTPUT_LIMITS, { now: Date.now, onError });
  const roots = createRoots({ read: [folder], write: [], workDir: folder });
  return {
    ledger,
    outputs: createOutputs(kept, sealer, onError),
    executor: createLocalExecutor({ env: process.env }),
    roots,
    undo,
    offered: { tools, known, unavailable: new Map() },
    logger: createLogger({ service: "fleet", level: "silent" }),
    async close() {
      await ledger.close();
      roots[Symbol.dispose]();
      undo[Symbol.dispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
