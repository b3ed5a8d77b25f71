import { isIdLike } from "./devices/manifest.ts";

const ENTRY = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})=(https?:\/\/\S+)$/;

/**
 * The devices of a setting such as "laptop=http://10.0.0.5:7402,nas=http://10.0.0.6:7402", by name. A
 * variable such as REEVE_DIAL_LAPTOP_URL, where it is set and not empty, has the last word on where a device is. Throws
 * a TypeError that says which entry is wrong.
 */
export function parseDevices(
  text: string,
  env: Readonly<Record<string, string | undefined>> = {},
): ReadonlyMap<string, string> {
  const devices = new Map<string, string>();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const [, name, url] = ENTRY.exec(entry) ?? [];
    if (name === undefined || url === undefined || !URL.canParse(url)) {
      throw new TypeError(`REEVE_DIAL_DEVICES: "${entry}" is not name=url, such as laptop=http://127.0.0.1:7402`);
    }
    if (isIdLike(name)) throw new TypeError(`REEVE_DIAL_DEVICES: "${name}" has the form of an id; choose another name`);
    if (devices.has(name)) throw new TypeError(`REEVE_DIAL_DEVICES: "${name}" is named twice`);
    devices.set(name, (overrideOf(name, env) ?? url).replace(/\/$/, ""));
  }
  return devices;
}

function overrideOf(name: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const variable = `REEVE_DIAL_${name.toUpperCase().replaceAll("-", "_")}_URL`;
  const url = env[variable];
  if (url === undefined || url === "") return undefined;
  if (/^https?:\/\//.test(url) && URL.canParse(url)) return url;
  throw new TypeError(`${variable}: "${url}" is no URL, such as http://127.0.0.1:7402`);
}

/** The addresses of a setting, comma-separated; at least one. Throws a TypeError that says which is wrong. */
export function parseUrls(variable: string, text: string): [string, ...string[]] {
  const urls = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  for (const url of urls) {
    if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
      throw new TypeError(`${variable}: "${url}" is no URL, such as http://127.0.0.1:7401`);
    }
  }
  const [first, ...others] = urls.map((url) => url.replace(/\/$/, ""));
  if (first === undefined) throw new TypeError(`${variable} names no address`);
  return [first, ...others];
}
