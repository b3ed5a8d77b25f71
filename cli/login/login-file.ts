import { rm } from "node:fs/promises";
import { join } from "node:path";
import { UsageError } from "../errors/usage-error.ts";
import { readOwnFile, writePrivateFile } from "../private-file.ts";
import type { LoginTokens, Provider } from "./provider.ts";

/** A login as it is kept: where it is good, and what refreshes it. */
export interface Login extends LoginTokens {
  provider: Provider;
  /** The only addresses that the token is sent to. */
  registry: string;
  policy: string | undefined;
}

/** The login of a data folder; undefined where there is none. Throws a UsageError for one that is damaged or open to others. */
export async function readLogin(folder: string): Promise<Login | undefined> {
  const path = loginPath(folder);
  const bytes = await readOwnFile(path);
  if (bytes === undefined) return undefined;
  const login = loginOf(Buffer.from(bytes).toString());
  if (login !== undefined) return login;
  throw new UsageError(`${path} is damaged`, ["log in again with `reeve login`"]);
}

/** Keeps a login, mode 0600, whole or not at all. */
export function writeLogin(folder: string, login: Login): Promise<void> {
  return writePrivateFile(loginPath(folder), `${JSON.stringify(login, undefined, 2)}\n`);
}

/** Forgets the login. False where there was none. */
export async function removeLogin(folder: string): Promise<boolean> {
  const existed = (await readLogin(folder).catch(() => true)) !== undefined;
  await rm(loginPath(folder), { force: true });
  return existed;
}

function loginPath(folder: string): string {
  return join(folder, "login.json");
}

function loginOf(text: string): Login | undefined {
  try {
    const login: unknown = JSON.parse(text);
    return isLogin(login) ? login : undefined;
  } catch {
    return undefined;
  }
}

function isLogin(value: unknown): value is Login {
  if (typeof value !== "object" || value === null) return false;
  const { provider, registry, policy, idToken, refreshToken, expireMs } = value as Partial<Login>;
  const texts = [provider?.issuer, provider?.clientId, registry, idToken, policy ?? "", refreshToken ?? ""];
  return texts.every((text) => typeof text === "string") && typeof expireMs === "number";
}
