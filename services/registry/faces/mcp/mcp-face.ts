import type { JsonValue } from "@bufbuild/protobuf";
import { isLoopback } from "../../../../lib/config/loopback.ts";
import { parseStrictJson } from "../../../../lib/json/strict-json.ts";
import type { Logger } from "../../../../lib/log/log.ts";
import type { McpHttp } from "../../../../lib/mcp/http.ts";
import type { ApprovalUrl } from "../../../../lib/mcp/result.ts";
import type { PlainRequest, PlainResponse } from "../../../../lib/server/plain-http.ts";
import type { Calls } from "../../calls/calls.ts";
import type { RegistryConfig } from "../../config.ts";
import type { Directory } from "../../devices/directory.ts";
import type { HttpRequest } from "../http/router.ts";
import { currentToolset } from "./current-toolset.ts";
import { registryGate } from "./registry-gate.ts";

/** The largest message, in bytes. */
const MAX_BODY = 4 * 1024 * 1024;

/** The version that clients are shown. */
const VERSION = "0.1.0";

/** Serves MCP clients over Streamable HTTP. */
export interface McpFace {
  answer(request: HttpRequest, response: PlainResponse): Promise<void>;
  close(): Promise<void>;
}

/** The face for MCP clients. What it needs of the protocol is loaded with the first request. */
export function createMcpFace(
  calls: Calls,
  directory: Directory,
  { logger, config }: { logger: Logger; config: Pick<RegistryConfig, "approvalUrl"> },
): McpFace {
  const toolset = currentToolset(directory);
  let loaded: Promise<McpHttp> | undefined;
  const load = async () => {
    const { createMcpHttp } = await import("../../../../lib/mcp/http.ts");
    return createMcpHttp({
      gateOf: (principal) => registryGate(calls, toolset, principal),
      toolset,
      version: VERSION,
      approvalUrl: pageOf(config.approvalUrl),
      onError: (err) => logger.error({ err }, "mcp request failed"),
    });
  };
  return {
    async answer({ plain, principal }, response) {
      if (!isOwnOrigin(plain.headers.origin)) return response.json(403, rpcError(-32600, "pages may not call this"));
      const body = parsed(await plain.readBody(MAX_BODY));
      if (body === undefined) return response.json(400, rpcError(-32700, "the body is no valid JSON document"));
      loaded ??= load();
      const http = await loaded;
      await http.answer({ headers: plain.headers, signal: plain.signal, body, principal }, response.raw);
    },
    close: async () => (await loaded)?.close(),
  };
}

function pageOf(template: string | undefined): ApprovalUrl {
  return template === undefined ? undefined : (approvalId) => template.replace("{approval}", () => approvalId);
}

/**
 * Programs send no Origin, and pages of this machine, such as a tool for developers, name it. Any other page is refused,
 * whatever token it has: its name may have been pointed here (DNS rebinding).
 */
function isOwnOrigin(origin: PlainRequest["headers"]["origin"]): boolean {
  return origin === undefined || isLoopback(URL.parse(origin)?.hostname ?? "");
}

function parsed(body: Uint8Array): JsonValue | undefined {
  try {
    return parseStrictJson(body, { maxBytes: MAX_BODY });
  } catch {
    return undefined;
  }
}

function rpcError(code: number, message: string): object {
  return { jsonrpc: "2.0", id: null, error: { code, message } };
}
