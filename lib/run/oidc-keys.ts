import { oidcSettings } from "../../gen/settings/settings.ts";
import { authenticateByOidc } from "../auth/oidc.ts";
import { parseRoleMapping } from "../auth/oidc-claims.ts";
import type { Authenticate } from "../auth/principal.ts";
import { ConfigError, type ConfigOf } from "../config/config.ts";

/** The settings of a service's process that let people in by an OpenID Connect provider. */
export const oidcKeys = oidcSettings;

export type OidcSettings = Partial<ConfigOf<typeof oidcKeys>>;

/** Lets people in as the settings say; undefined where they name no provider. Throws ConfigError for half of a setting. */
export function oidcAuthenticator(settings: OidcSettings): Authenticate | undefined {
  const { oidcIssuer: issuer, oidcAudience, oidcRoles, oidcRolesClaim = oidcKeys.oidcRolesClaim.default } = settings;
  if (issuer === undefined) return undefined;
  const audiences = (oidcAudience ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (audiences.length === 0)
    throw new ConfigError([`${oidcKeys.oidcAudience.name} is not set: ${oidcKeys.oidcAudience.doc}`]);
  try {
    return authenticateByOidc({ issuer, audiences, mapping: parseRoleMapping(oidcRolesClaim, oidcRoles ?? "") });
  } catch (cause: unknown) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new ConfigError([`${oidcKeys.oidcRoles.name}: ${problem}`]);
  }
}
