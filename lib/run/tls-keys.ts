import { configSettings, tlsSettings } from "../../gen/settings/settings.ts";
import type { ConfigOf } from "../config/config.ts";
import { type TlsFiles, type TlsLogger, tlsFromFiles } from "../identity/tls-source.ts";

/** The settings of a service's process that say as whom it listens and calls, and whom it trusts. */
export const tlsKeys = {
  ...tlsSettings,
  allowPlaintext: configSettings.allowPlaintext,
  trustDomain: configSettings.trustDomain,
};

export type TlsSettings = Partial<ConfigOf<typeof tlsKeys>>;

/** The TLS material that the settings name; undefined where they name none. Throws where they name only a part. */
export function openTls(settings: TlsSettings, logger: TlsLogger): TlsFiles | undefined {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile, tlsCaFile: caFile } = settings;
  if (certFile !== undefined && keyFile !== undefined && caFile !== undefined)
    return tlsFromFiles({ certFile, keyFile, caFile, logger });
  const named = [certFile, keyFile, caFile].filter((file) => file !== undefined);
  if (named.length === 0) return undefined;
  const { tlsCertFile, tlsKeyFile, tlsCaFile } = tlsKeys;
  throw new Error(`TLS needs all of ${tlsCertFile.name}, ${tlsKeyFile.name} and ${tlsCaFile.name}, or none of them`);
}
