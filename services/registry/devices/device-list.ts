/**
 * The devices of a setting such as "laptop=http://10.0.0.5:7402,nas=http://10.0.0.6:7402", by name. Throws a
 * TypeError that says which entry is wrong.
 */
export function parseDevices(text: string): ReadonlyMap<string, string> {
  const devices = new Map<string, string>();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const [, name, url] = /^([A-Za-z0-9][A-Za-z0-9_-]{0,63})=(https?:\/\/\S+)$/.exec(entry) ?? [];
    if (name === undefined || url === undefined || !URL.canParse(url)) {
      throw new TypeError(`REEVE_DEVICES: "${entry}" is not name=url, such as laptop=http://127.0.0.1:7402`);
    }
    if (devices.has(name)) throw new TypeError(`REEVE_DEVICES: "${name}" is there twice`);
    devices.set(name, url.replace(/\/$/, ""));
  }
  return devices;
}
