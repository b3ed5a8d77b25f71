import { configSettings, registrySettings } from "../../../gen/settings/settings.ts";

/** The settings of enrollment, as a part of the registry's. */
export const enrollmentKeys = {
  publicUrl: registrySettings.publicUrl,
  deviceCertTtl: registrySettings.deviceCertTtl,
  sealingKeyFile: configSettings.sealingKeyFile,
};
