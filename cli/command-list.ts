import type { Command } from "commander";
import type { CommandContext } from "./command-context.ts";

/** Adds a command to the program. */
export type Register = (program: Command, context: CommandContext) => void;

/** A command: what `reeve --help` says of it, and the way to the rest. */
export interface CommandEntry {
  name: string;
  summary: string;
  load(): Promise<Register>;
}

/** Every command, in the order of `reeve --help`. */
export const commandList: readonly CommandEntry[] = [
  {
    name: "up",
    summary: "run everything on this machine; short for `serve all`",
    load: async () => (await import("./commands/up.ts")).registerUp,
  },
  {
    name: "serve",
    summary: "run services: all, registry, policy, agent or device",
    load: async () => (await import("./commands/serve.ts")).registerServe,
  },
  {
    name: "demo",
    summary: "watch an agent do a small job through the gate, from start to proof",
    load: async () => (await import("./commands/demo.ts")).registerDemo,
  },
  {
    name: "call",
    summary: "call a tool; list, show, watch and cancel calls",
    load: async () => (await import("./commands/call.ts")).registerCall,
  },
  {
    name: "job",
    summary: "list, show, read and cancel calls that go on without their caller",
    load: async () => (await import("./commands/job.ts")).registerJob,
  },
  {
    name: "fanout",
    summary: "list, show, watch and cancel calls to many devices",
    load: async () => (await import("./commands/fanout.ts")).registerFanOut,
  },
  {
    name: "schedule",
    summary: "call tools at set times, with no person watching",
    load: async () => (await import("./commands/schedule.ts")).registerSchedule,
  },
  {
    name: "undo",
    summary: "put back what a call changed of a device's files",
    load: async () => (await import("./commands/undo.ts")).registerUndo,
  },
  {
    name: "chat",
    summary: "let a model use the tools",
    load: async () => (await import("./commands/chat.ts")).registerChat,
  },
  {
    name: "run",
    summary: "start, list, watch, cancel and answer runs of models in the agent service",
    load: async () => (await import("./commands/run.ts")).registerRun,
  },
  {
    name: "mcp",
    summary: "let an MCP client use the tools: serve it, and write its configuration",
    load: async () => (await import("./commands/mcp.ts")).registerMcp,
  },
  {
    name: "agent",
    summary: "list, show and check the files that configure agents",
    load: async () => (await import("./commands/agent.ts")).registerAgent,
  },
  {
    name: "tool",
    summary: "list and show the tools that can be called",
    load: async () => (await import("./commands/tool.ts")).registerTool,
  },
  {
    name: "capability",
    summary: "list and show what devices can allow callers to do",
    load: async () => (await import("./commands/capability.ts")).registerCapability,
  },
  {
    name: "device",
    summary: "list and show devices, make machines devices, and keep devices out",
    load: async () => (await import("./commands/device.ts")).registerDevice,
  },
  {
    name: "enrollment",
    summary: "list the enrollments of devices, and confirm those that wait",
    load: async () => (await import("./commands/enrollment.ts")).registerEnrollment,
  },
  {
    name: "approval",
    summary: "list, show, watch and decide held calls",
    load: async () => (await import("./commands/approval.ts")).registerApproval,
  },
  {
    name: "policy",
    summary: "check, explain and show policy",
    load: async () => (await import("./commands/policy.ts")).registerPolicy,
  },
  {
    name: "shell",
    summary: "say what shell text comes to, without running it",
    load: async () => (await import("./commands/shell.ts")).registerShell,
  },
  {
    name: "secret",
    summary: "keep secrets for the tools of this machine's device",
    load: async () => (await import("./commands/secret.ts")).registerSecret,
  },
  {
    name: "plugin",
    summary: "make plugins for this machine, check them, and accept them",
    load: async () => (await import("./commands/plugin.ts")).registerPlugin,
  },
  {
    name: "audit",
    summary: "list, show, verify and prove the record",
    load: async () => (await import("./commands/audit.ts")).registerAudit,
  },
  {
    name: "key",
    summary: "list and rotate the keys that sign",
    load: async () => (await import("./commands/key.ts")).registerKey,
  },
  {
    name: "token",
    summary: "create, list and revoke the tokens of this machine's control plane",
    load: async () => (await import("./commands/token.ts")).registerToken,
  },
  {
    name: "operator",
    summary: "keep the operator's token of this machine under a passphrase",
    load: async () => (await import("./commands/operator.ts")).registerOperator,
  },
  {
    name: "service-ca",
    summary: "make the certificates that services show each other",
    load: async () => (await import("./commands/service-ca.ts")).registerServiceCa,
  },
  {
    name: "login",
    summary: "log in at an OpenID Connect provider",
    load: async () => (await import("./commands/login.ts")).registerLogin,
  },
  {
    name: "logout",
    summary: "forget the login",
    load: async () => (await import("./commands/login.ts")).registerLogin,
  },
  {
    name: "manifest",
    summary: "say, signed by its owner, what a device may do at most",
    load: async () => (await import("./commands/manifest.ts")).registerManifest,
  },
  {
    name: "config",
    summary: "look at the settings of this machine, and check the configuration file",
    load: async () => (await import("./commands/config.ts")).registerConfig,
  },
  {
    name: "migrate",
    summary: "bring a service's database up to date",
    load: async () => (await import("./commands/migrate.ts")).registerMigrate,
  },
  {
    name: "doctor",
    summary: "check that everything works, and say what to do",
    load: async () => (await import("./commands/doctor.ts")).registerDoctor,
  },
];
