import { oidcSettings } from "../../gen/settings/settings.ts";
import { authenticateByOidc } from "../auth/oidc.ts";
import { parseRoleMapping } from "../auth/oidc-claims.ts";
import type { Authenticate } from "../auth/principal.ts";
import { ConfigError, type ConfigOf } from "../config/config.ts";

/** The settings of a service's process that let people in by an OpenID Connect provider. */
export const oidcKeys = oidcSettings;

export type OidcSettings = Partial<ConfigOf<typeof oidcKeys>>;

/** The path of the resource that OAuth clients call: MCP. */
export const RESOURCE_PATH = "/mcp";

/** What OAuth clients ask a provider's access tokens for (RFC 8707), and the provider. */
export interface ProtectedResource {
  /** The address that clients use, such as "https://reeve.example/mcp". The tokens' audience. */
  resource: string;
  issuer: string;
}

/**
 * What OAuth clients call: the first audience that is an address with its path. Undefined where there is none, or no provider:
 * then clients are not sent to one.
 */
export function protectedResource({ oidcIssuer: issuer, oidcAudience }: OidcSettings): ProtectedResource | undefined {
  const resource = audiencesOf(oidcAudience).find(isResource);
  return issuer === undefined || resource === undefined ? undefined : { resource, issuer };
}

/** Lets people in as the settings say; undefined where they name no provider. Throws ConfigError for half of a setting. */
export function oidcAuthenticator(settings: OidcSettings): Authenticate | undefined {
  const { oidcIssuer: issuer, oidcAudience, oidcRoles, oidcRolesClaim = oidcKeys.oidcRolesClaim.default } = settings;
  if (issuer === undefined) return undefined;
  const audiences = audiencesOf(oidcAudience);
  if (audiences.length === 0)
    throw new ConfigError([`${oidcKeys.oidcAudience.name} is not set: ${oidcKeys.oidcAudience.doc}`]);
  try {
    const resources = audiences.filter(isResource);
    return authenticateByOidc({
      issuer,
      audiences,
      resources,
      mapping: parseRoleMapping(oidcRolesClaim, oidcRoles ?? ""),
    });
  } catch (cause: unknown) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError([`${oidcKeys.oidcRoles.name}: ${problem}`]);
  }
}

function isResource(audience: string): boolean {
  return URL.parse(audience)?.pathname === RESOURCE_PATH;
}

function audiencesOf(setting: string | undefined): string[] {
  return (setting ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}
