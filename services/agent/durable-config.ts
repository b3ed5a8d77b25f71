import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ConfigOf } from "../../lib/config/config.ts";
import { fault } from "../../lib/fault/fault.ts";
import type { agentServiceEnvironment } from "./config.ts";
import type { DurableConfig } from "./durable-runs.ts";

/** Where durable runs are carried on, as the settings say. Throws where they say only a part of it. */
export function durableOf(settings: ConfigOf<typeof agentServiceEnvironment>): { durable?: DurableConfig } {
  const { restateIngressUrl, restateAdminUrl, restateIdentityKeys, workerHost, workerPort, workerUrl } = settings;
  if (restateIngressUrl === undefined && restateAdminUrl === undefined) return {};
  const identityKeys = (restateIdentityKeys ?? "").split(",").flatMap((key) => (key.trim() === "" ? [] : [key.trim()]));
  if (restateIngressUrl === undefined || restateAdminUrl === undefined || identityKeys.length === 0) {
    const message =
      "durable runs need REEVE_RESTATE_INGRESS_URL, REEVE_RESTATE_ADMIN_URL and REEVE_RESTATE_IDENTITY_KEYS";
    throw fault(ErrorReason.INVALID_INPUT, { field: "agent.restate_ingress_url" }, { message });
  }
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
