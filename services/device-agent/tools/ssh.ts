import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Ssh, SshExecRequest, SshExecResponseSchema } from "../../../gen/ts/reeve/tools/v1/ssh_pb.ts";
import { plainHost } from "../../../lib/hosts/host-list.ts";
import { shellWord } from "../../../lib/programs/shell-word.ts";
import { type Resolve, resolveHost } from "../hosts/resolve-host.ts";
import { programFailed, runProgram } from "./outcome.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

/** How SSH is set up. */
export interface SshOptions {
  /** The addresses of a name. Default: as the system resolves it. */
  resolve?: Resolve;
  /** The file with the keys of known hosts. Default: that of the device's user, besides the machine's own. */
  knownHosts?: string;
  /** The file with the key to log in with. Default: those of the device's user, and of its SSH agent. */
  identity?: string;
  /** Variables for the client, such as where the SSH agent listens. */
  env?: Readonly<Record<string, string>>;
}

const PORT = 22;

/** What ssh exits with where it fails itself. The program there may exit with it as well. */
const OWN_FAILURE = 255;

/** How ssh says so. What it is to start may have run where the connection was lost. */
const OWN_WORDS =
  /^(?:ssh: |Host key verification failed|.*: Permission denied|No \S+ host key is known|@@@|Connection (?:closed|reset|timed)|kex_exchange)/m;

/** Programs on other machines, by the OpenSSH client. */
export function createSshTools(options: SshOptions = {}): ToolFamily<typeof Ssh> {
  return { exec: (input, context) => exec(options, input, context) };
}

async function exec(
  options: SshOptions,
  { host, user, port: asked, argv, timeoutMs }: SshExecRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof SshExecResponseSchema>> {
  const port = asked || PORT;
  const target = { field: "host", host, port, defaultPort: PORT };
  const [found] = await resolveHost(context.hosts, target, options.resolve);
  const address = found?.address ?? "";
  const args = [...settings(options, nameInKnownHosts(host, port)), "-p", String(port), "-l", user, "--", address];
  const run = await runProgram(context, {
    argv: ["ssh", ...args, argv.map(shellWord).join(" ")],
    cwd: "/",
    toolEnv: options.env ?? {},
    timeoutMs,
  });
  if (run.exitCode === OWN_FAILURE && OWN_WORDS.test(run.stderr)) throw programFailed(run.program, run);
  const { stdout, stderr, exitCode, truncated, durationMs } = run;
  return { stdout, stderr, exitCode, truncated, durationMs };
}

/** As known_hosts names a machine: the connection goes to an address that was looked up and checked here. */
function nameInKnownHosts(host: string, port: number): string {
  const plain = plainHost(host);
  return port === PORT ? plain : `[${plain}]:${port}`;
}

/**
 * No configuration file, which could name other hosts, programs and keys; nothing is asked, nothing is learned, nothing of
 * this machine is forwarded.
 */
function settings({ knownHosts, identity }: SshOptions, name: string): string[] {
  const values = {
    BatchMode: "yes",
    StrictHostKeyChecking: "yes",
    HostKeyAlias: name,
    CheckHostIP: "no",
    UpdateHostKeys: "no",
    VerifyHostKeyDNS: "no",
    CanonicalizeHostname: "no",
    ProxyCommand: "none",
    ProxyJump: "none",
    ClearAllForwardings: "yes",
    ForwardAgent: "no",
    ForwardX11: "no",
    PermitLocalCommand: "no",
    ControlMaster: "no",
    ControlPath: "none",
    RequestTTY: "no",
    EscapeChar: "none",
    ConnectTimeout: "15",
    LogLevel: "ERROR",
    ...(knownHosts !== undefined && { UserKnownHostsFile: knownHosts }),
    ...(identity !== undefined && { IdentityFile: identity, IdentitiesOnly: "yes" }),
  };
  return ["-F", "none", "-T", ...Object.entries(values).flatMap(([key, value]) => ["-o", `${key}=${value}`])];
}
