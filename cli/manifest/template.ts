import type { CommandContext } from "../command-context.ts";

/** For how long the template says that it holds, in milliseconds: 90 days. */
const HOLDS_MS = 90 * 86_400_000;

/** The text to begin with: what this machine's settings say now. */
export function templateText({ env, now }: CommandContext): string {
  const list = (text: string | undefined, separator: string): string =>
    JSON.stringify((text ?? "").split(separator).filter((entry) => entry !== ""));
  const until = new Date(now() + HOLDS_MS).toISOString().slice(0, 10);
  return `# What the owner of these devices lets be done there, whatever else is set. What is not named is not allowed.
version: 1            # each edition needs a higher one
expire_time: ${until}   # from then on the device refuses every call
devices: [${JSON.stringify(env.REEVE_DEVICE_NAME || "this")}]
mode: ${env.REEVE_DEVICE_MODE || "user"}            # user, sudo or all
capabilities: ${env.REEVE_DEVICE_CAPABILITIES ? list(env.REEVE_DEVICE_CAPABILITIES, ",") : '["*"]'}   # names, "fs.*", or "*"
read_roots: ${list(env.REEVE_DEVICE_READ_ROOTS, ":")}
write_roots: ${list(env.REEVE_DEVICE_WRITE_ROOTS, ":")}
hosts: []             # such as api.example.com or "*.example.com"
sandbox: none         # none, workspace or read_only: how far every program is kept apart at least
plugins: {}           # name: digest, as \`reeve plugin check\` prints it
environment: []       # variables that plugins may be given
`;
}

/** The text of an edition with the version after this one. */
export function raisedVersion(text: string, version: bigint): string {
  return text.replace(/^version:\s*\d+/m, `version: ${version + 1n}`);
}
