import { authenticateByOidc } from "../auth/oidc.ts";
import { parseRoleMapping } from "../auth/oidc-claims.ts";
import type { Authenticate } from "../auth/principal.ts";
import { ConfigError, type ConfigOf, type ConfigSpec } from "../config/config.ts";

/** The settings of a service's process that let people in by an OpenID Connect provider. */
export const oidcKeys = {
  oidcIssuer: {
    name: "REEVE_OIDC_ISSUER",
    type: "string",
    optional: true,
    doc: "The OpenID Connect provider, exactly as its tokens name it, such as https://login.example. Unset: none.",
  },
  oidcAudience: {
    name: "REEVE_OIDC_AUDIENCE",
    type: "string",
    optional: true,
    doc: "The audiences whose tokens are meant for this control plane, comma-separated: most often the client's id.",
  },
  oidcRolesClaim: {
    name: "REEVE_OIDC_ROLES_CLAIM",
    type: "string",
    default: "groups",
    doc: "The claim that lists what a person belongs to; dots lead into objects, such as realm_access.roles.",
  },
  oidcRoles: {
    name: "REEVE_OIDC_ROLES",
    type: "string",
    optional: true,
    doc: "Which value of the claim gives which role, such as reeve-admins=operator,everyone=auditor.",
  },
} as const satisfies ConfigSpec;

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
