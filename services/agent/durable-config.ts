import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ConfigOf } from "../../lib/config/config.ts";
import { isLoopback } from "../../lib/config/loopback.ts";
import { fault } from "../../lib/fault/fault.ts";
import { invalidField } from "../../lib/fault/invalid-input.ts";
import type { agentServiceEnvironment } from "./config.ts";
import type { DurableConfig } from "./durable-runs.ts";

/**
 * Where durable runs are carried on, as the settings say. Throws where they say only a part of it, and for a worker beyond
 * loopback unless plaintext is allowed.
 */
export function durableOf(settings: ConfigOf<typeof agentServiceEnvironment>): { durable?: DurableConfig } {
  const { restateIngressUrl, restateAdminUrl, restateIdentityKeys, workerHost, workerPort, workerUrl } = settings;
  if (restateIngressUrl === undefined && restateAdminUrl === undefined) return {};
  const identityKeys = (restateIdentityKeys ?? "").split(",").flatMap((key) => (key.trim() === "" ? [] : [key.trim()]));
  if (restateIngressUrl === undefined || restateAdminUrl === undefined || identityKeys.length === 0) {
    const message =
      "durable runs need REEVE_RESTATE_INGRESS_URL, REEVE_RESTATE_ADMIN_URL and REEVE_RESTATE_IDENTITY_KEYS";
    throw fault(ErrorReason.INVALID_INPUT, { field: "agent.restate_ingress_url" }, { message });
  }
  assertWorkerPrivate(settings);
  return {
    durable: {
      ingress: { url: restateIngressUrl.href },
      admin: { url: restateAdminUrl.href },
      identityKeys,
      workerHost,
      workerPort,
      ...(workerUrl !== undefined && { workerUrl: workerUrl.href.replace(/\/$/u, "") }),
    },
  };
}

/** A worker has no TLS of its own, and what it answers Restate are prompts, results of tools and what models said. */
function assertWorkerPrivate({ workerHost, allowPlaintext }: ConfigOf<typeof agentServiceEnvironment>): void {
  if (allowPlaintext || isLoopback(workerHost)) return;
  const text =
    `refusing to let the worker of durable runs listen on ${workerHost} in cleartext, where others could read runs off ` +
    "the network; set REEVE_AGENT_WORKER_HOST=127.0.0.1, or REEVE_ALLOW_PLAINTEXT=true where something else encrypts the way";
  throw invalidField("agent.worker_host", "loopback", text, { text });
}
