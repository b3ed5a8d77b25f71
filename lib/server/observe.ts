import { faultDetail, reasonName } from "../fault/fault.ts";
import type { Logger } from "../log/log.ts";
import type { CallObserver } from "./call.ts";
import { codeText, type Metrics } from "./metrics.ts";
import { createStrangerLog, type StrangerLog } from "./stranger-log.ts";

/** Writes one line for each RPC when it ends, bounded for unknown callers, counts it, and logs the cause of what the caller sees only as an id. */
export function createObserver(
  logger: Logger,
  metrics: Metrics | undefined,
  strangers: StrangerLog = createStrangerLog(logger),
): CallObserver {
  return {
    begin(call) {
      metrics?.begin(call.method);
    },
    end(call, ms) {
      metrics?.end(call.method, call.error?.code, ms);
      if (!logger.isLevelEnabled("info")) return;
      const { error, method, requestId, principal, protocol } = call;
      if (principal === undefined && !strangers.admit()) return;
      const detail = faultDetail(error);
      logger.info(
        {
          request_id: requestId,
          procedure: `${method.parent.typeName}/${method.name}`,
          actor: principal?.id,
          protocol,
          code: codeText(error?.code),
          reason: detail === undefined ? undefined : reasonName(detail.reason),
          ms: Math.round(ms * 100) / 100,
        },
        "rpc",
      );
    },
    unexpected(call, cause) {
      const procedure = `${call.method.parent.typeName}/${call.method.name}`;
      logger.error({ request_id: call.requestId, procedure, err: cause }, "unexpected error");
    },
  };
}
