import type { ProtectedResource } from "../../../../lib/run/oidc-keys.ts";
import type { Challenge, PlainRequest, PlainResponse } from "../../../../lib/server/plain-http.ts";

/** Where clients look for what they need to ask for a token (RFC 9728, 3.1): with the resource's path, and without. */
const METADATA_PATH = "/.well-known/oauth-protected-resource";

/**
 * The challenge of `/mcp`. It names the metadata only where there is a provider to go to, and says so where the token that was
 * shown is not valid, or not any more: a client then asks for another (RFC 6750, 3.1).
 */
export function mcpChallenge(resource: ProtectedResource | undefined): Challenge {
  const { origin, pathname } = new URL(resource?.resource ?? "http://localhost");
  const metadata = resource === undefined ? [] : [`resource_metadata="${origin}${METADATA_PATH}${pathname}"`];
  return (path, hasToken) => {
    if (path !== "/mcp") return undefined;
    const parameters = [...(hasToken ? ['error="invalid_token"'] : []), ...metadata];
    return `Bearer ${parameters.join(", ")}`.trim();
  };
}

/** Serves the metadata of the resource to anybody; no path is its own where there is none. */
export function serveResourceMetadata(
  resource: ProtectedResource | undefined,
): (request: PlainRequest, response: PlainResponse) => boolean {
  const document = resource && {
    resource: resource.resource,
    resource_name: "Reeve",
    authorization_servers: [resource.issuer],
    bearer_methods_supported: ["header"],
  };
  return (request, response) => {
    const { method, path } = request;
    const isOwn =
      path === "/.well-known/oauth-protected-resource" || path === "/.well-known/oauth-protected-resource/mcp";
    if (!isOwn || document === undefined || method !== "GET") return false;
    response.json(200, document);
    return true;
  };
}
