import { homedir } from "node:os";
import { join } from "node:path";
import { SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { readConfig } from "../../lib/config/config.ts";
import { createLogger } from "../../lib/log/log.ts";
import { deviceConfigOf } from "../../services/device-agent/device-config.ts";
import { defaultReadRoots } from "../../services/device-agent/roots/default-read-roots.ts";
import { parseList } from "../../services/device-agent/settings.ts";
import type { CommandContext } from "../command-context.ts";
import { withOwnFilesDenied } from "../config/own-files.ts";
import { ownerText } from "../device/describe-device.ts";
import { EXPOSED_TEXT, sandboxText } from "../doctor/exposed-files.ts";
import { explainStart } from "../errors/port-in-use.ts";
import { UsageError } from "../errors/usage-error.ts";
import { offerSeal } from "../operator/offer-seal.ts";
import { commandName } from "../print/command-name.ts";
import { dataDir, writeProfile } from "../profile.ts";
import { type MachineTokens, prepareMachineTokens, runTokens } from "../stack/machine-tokens.ts";
import { restateProgram } from "../stack/restate-program.ts";
import { type Stack, startStack } from "../stack/stack.ts";
import { type UpFlags, upEnvironment, withUpFlags } from "../stack/up-settings.ts";

/** Resolves when everything runs and was written down for the `reeve` of this machine. */
export async function up(flags: UpFlags, context: CommandContext): Promise<Stack> {
  const env = withUpFlags(flags, withOwnFilesDenied(context));
  const settings = readConfig(upEnvironment, env);
  const folder = dataDir(env);
  const device = deviceConfigOf(settings, env);
  const { writeRoots, plugins } = device;
  const readRoots =
    settings.readRoots || settings.manifest
      ? device.readRoots
      : defaultReadRoots(process.cwd(), context.env.HOME || homedir());
  const stack = await startStack({
    dataDir: folder,
    ports: portsFrom(settings.port),
    deviceName: settings.name,
    mode: device.mode,
    readRoots,
    writeRoots,
    device,
    toolsAllowed: parseList(settings.toolsAllowed, ","),
    ...(settings.approvalUrl === undefined ? {} : { approvalUrl: settings.approvalUrl }),
    ...(settings.policyFile === undefined ? {} : { policyFile: settings.policyFile }),
    ...(settings.natsUrl === undefined ? {} : { natsUrl: settings.natsUrl }),
    ...(settings.deviceAddress === undefined
      ? {}
      : { devices: { ...addressFrom(settings.deviceAddress), ...publicUrlFrom(settings.publicUrl) } }),
    callRetentionMs: settings.callRetention,
    agent: {
      port: settings.port === 0 ? 0 : settings.port + 3,
      agentsDir: settings.agentsDir ?? join(folder, "agents"),
      ...(settings.agentModel !== undefined && { model: settings.agentModel }),
      retentionMs: settings.runRetention,
      tokens: () => runTokens(folder),
      ...(flags.durable && { durable: durableFrom(settings.workerPort) }),
    },
    env: context.env,
    logger: createLogger({ service: "reeve", level: settings.logLevel }),
  }).catch((error: unknown) =>
    explainStart(error, settings.deviceAddress === undefined ? "--port" : "--port or --device-address"),
  );
  const tokens = await prepareMachineTokens(stack.tokens, folder);
  await writeProfile(folder, {
    registry: stack.registryUrl,
    policy: stack.policyUrl,
    registrySocket: stack.sockets.registry,
    policySocket: stack.sockets.policy,
    ...(stack.agentUrl !== undefined && { agent: stack.agentUrl }),
    ...(stack.sockets.agent !== undefined && { agentSocket: stack.sockets.agent }),
    token: tokens.profile,
    stateDir: folder,
  });
  const { offered: granted } = stack;
  const floor = granted.owner?.sandbox ?? SandboxLevel.NONE;
  const reeve = commandName({ env: context.env, folder: process.cwd(), script: process.argv[1] ?? "reeve" });
  context.stdout.write(
    `registry      ${stack.registryUrl}\npolicy        ${stack.policyUrl}\ndevice agent  ${stack.deviceUrl}\nagent         ${stack.agentUrl}\n` +
      `${stack.attachUrl === undefined ? "" : `devices       ${stack.attachUrl}\n`}` +
      `reads         ${granted.readRoots.join(", ") || NO_READING}\n` +
      `writes        ${granted.writeRoots.join(", ") || NO_WRITING}\n` +
      `${plugins === undefined ? "" : `plugins       ${plugins}\n`}` +
      `${granted.owner === undefined ? "" : `manifest      ${ownerText(granted.owner, context.now())}\n`}` +
      `sandbox       ${sandboxText(stack.sandbox)}\n` +
      `state         ${folder}\n${tokenText(tokens, reeve)}${floor > SandboxLevel.NONE ? "" : EXPOSED_TEXT}`,
  );
  const shown = tokens.issued?.operator ?? tokens.former;
  const offered = shown === undefined ? Promise.resolve() : offerSeal(context, folder, shown);
  // Not waited for: everything runs by now, and a signal has to end it while the question is open.
  void offered
    .catch((error: unknown) => context.stderr.write(`reeve: the operator's token was not kept: ${String(error)}\n`))
    .then(() => context.stdout.write(tryText(reeve)));
  return stack;
}

/** What to try next, as it works in another terminal. */
function tryText(reeve: string): string {
  const commands = ["tool list", "call this exec -- uname -a", "approval watch", "mcp config claude-code --write"];
  return `\nTry, in another terminal:\n${commands.map((words) => `  ${reeve} ${words}\n`).join("")}Ctrl-C ends it.\n`;
}

const NO_READING = "nothing: --read FOLDER opens a folder (the home folder is not opened by itself)";
const NO_WRITING = "nothing: --write FOLDER opens a folder";

function newTokenText(reeve: string): string {
  return (
    "\nThis machine's profile had no token that is let in, so its `reeve` has a new one, named owner-cli.\n" +
    `The older ones are still valid: see \`${reeve} token list\`.\n`
  );
}

/** What is said of tokens: those that are shown now are kept as hashes, so they cannot be shown again. */
function tokenText({ issued, former, isNew }: MachineTokens, reeve: string): string {
  if (issued !== undefined) {
    return (
      "\nTokens, shown this once: Reeve keeps only their hashes. The operator's approves held calls and administers; keep it.\n" +
      `  operator  ${issued.operator}\n  agent     ${issued.agent}\n` +
      "This machine's `reeve` has tokens of its own, which look and call, and approve nothing.\n"
    );
  }
  if (former !== undefined) {
    return (
      "\nAn older version kept the operator's token in this machine's profile, where every program of yours can read it. It is\n" +
      `shown this once, and kept there no longer.\n  operator  ${former}\n`
    );
  }
  return isNew ? newTokenText(reeve) : "";
}

function portsFrom(port: number): { registry: number; policy: number; device: number } {
  if (port > 65532) throw new UsageError(`${port} is no port with three after it`);
  if (port === 0) return { registry: 0, policy: 0, device: 0 };
  return { registry: port, policy: port + 1, device: port + 2 };
}

/** Looks for the server before anything is started. */
function durableFrom(workerPort: number): { workerPort: number } {
  restateProgram();
  return { workerPort };
}

function addressFrom(text: string): { host: string; port: number } {
  const [, bracketed, bare, port] = /^(?:\[([0-9a-fA-F:]+)\]|([^:\s]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? bare;
  if (host !== undefined && Number(port) <= 65_535) return { host, port: Number(port) };
  throw new UsageError(`--device-address: "${text}" is not host:port, such as 192.168.1.10:7443`);
}

function publicUrlFrom(url: string | undefined): { publicUrl?: string } {
  if (url === undefined) return {};
  if (URL.parse(url)?.protocol === "https:") return { publicUrl: url };
  throw new UsageError(`--device-url: "${url}" is no https address`);
}
