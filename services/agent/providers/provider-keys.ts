import { ConfigError, type ConfigSpec, type Environment } from "../../../lib/config/config.ts";
import { readPrivateFile } from "../../../lib/files/private-file.ts";
import { PROVIDERS } from "./providers.ts";

/** The settings of every provider of models. */
export function providerKeys(): ConfigSpec {
  const settings = PROVIDERS.flatMap(
    ({ name, keyVariable, needsKey, urlVariable, url, toUrl }) =>
      [
        {
          name: keyVariable,
          type: "string",
          optional: true,
          secret: true,
          doc: `The key of models called ${name}/NAME${needsKey ? "." : ", where their server takes one."}`,
        },
        {
          name: urlVariable,
          type: toUrl === undefined ? "url" : "string",
          optional: true,
          doc: `Where models called ${name}/NAME are. Default: ${url}.`,
        },
      ] as const,
  );
  return Object.fromEntries(settings.map((setting) => [setting.name, setting]));
}

const fileVariable = (keyVariable: string): string => `${keyVariable}_FILE`;

/** The settings that name files with the providers' keys, for a service. */
export function providerKeyFiles(): ConfigSpec {
  const settings = PROVIDERS.map(
    ({ keyVariable }) =>
      ({
        name: fileVariable(keyVariable),
        type: "path",
        optional: true,
        doc: `File with the key in place of ${keyVariable}, not readable by others; read at the start.`,
      }) as const,
  );
  return Object.fromEntries(settings.map((setting) => [setting.name, setting]));
}

/**
 * The variables with the providers' keys that stand in files. Throws where a file holds none or is open to others, and where
 * a key is given in both ways: which one is meant is not guessed.
 */
export function withKeysFromFiles(env: Environment): Environment {
  const keys = PROVIDERS.flatMap(({ keyVariable }) => {
    const path = env[fileVariable(keyVariable)];
    if (!path) return [];
    if (env[keyVariable]) throw new ConfigError([`${fileVariable(keyVariable)} excludes ${keyVariable}`]);
    const key = readPrivateFile(path).trim();
    if (key === "") throw new ConfigError([`${fileVariable(keyVariable)} names an empty file`]);
    return [[keyVariable, key] as const];
  });
  return { ...env, ...Object.fromEntries(keys) };
}
