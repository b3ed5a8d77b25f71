/** How something that can be called has to do with running tools. */
export type Entry =
  /** It runs a tool: the ways that the tests go, see one-gate.ways.ts. */
  | { runsBy: WayName | readonly WayName[] }
  /** It runs none, and why. */
  | { runsNone: string };

/** Every way to run a tool. */
export type WayName =
  | "CallService/CallTool"
  | "CallService/CallTools"
  | "FanOutService/StartFanOut"
  | "ApprovalService/Approve"
  | "a tool's own RPC"
  | "POST /invoke"
  | "MCP 2026-07-28"
  | "MCP 2025-11-25"
  | "reeve mcp 2026-07-28"
  | "reeve mcp 2025-11-25"
  | "reeve call"
  | "reeve call --on"
  | "ScheduleService/RunSchedule"
  | "RunService/StartRun"
  | "reeve run start"
  | "reeve schedule run"
  | "the model's loop"
  | "reeve chat"
  | "DeviceAgentService/Execute"
  | "DeviceAgentService/Link";

const reads: Entry = { runsNone: "it only reads" };
const decides: Entry = { runsNone: "it only decides; what it grants has to be shown to a device" };
const stops: Entry = { runsNone: "it only keeps a call from running, or from going on" };
const serves: Entry = { runsNone: "it starts services, which run what they are asked to" };
const carries: Entry = { runsNone: "a device receives there what others have called; it can call nothing itself" };
const forwards: Entry = {
  runsNone:
    "it carries granted calls from another replica, where they passed the gate; a device runs none without its grant",
};
const administers: Entry = { runsNone: "it changes who may call, and calls nothing" };

/** Every RPC of every service in proto/reeve, but for the tools' own, by service and name. */
export const RPCS: Readonly<Record<string, Entry>> = {
  "reeve.audit.v1.AuditService/ListRecords": reads,
  "reeve.audit.v1.AuditService/GetCheckpoint": reads,
  "reeve.audit.v1.AuditService/GetInclusionProof": reads,
  "reeve.audit.v1.AuditService/GetConsistencyProof": reads,
  "reeve.cluster.v1.PeerService/ForwardDevice": forwards,
  "reeve.cluster.v1.PeerService/FollowCall": reads,
  "reeve.cluster.v1.PeerService/CancelOwnedCall": stops,
  "reeve.cluster.v1.PeerService/Wake": { runsNone: "it only has a replica read its database" },
  "reeve.device.v1.DeviceAgentService/GetManifest": reads,
  "reeve.device.v1.DeviceAgentService/Execute": { runsBy: "DeviceAgentService/Execute" },
  "reeve.device.v1.DeviceAgentService/GetExecution": reads,
  "reeve.device.v1.DeviceAgentService/Link": { runsBy: "DeviceAgentService/Link" },
  "reeve.approval.v1.ApprovalService/GetApproval": reads,
  "reeve.approval.v1.ApprovalService/ListApprovals": reads,
  "reeve.approval.v1.ApprovalService/Approve": { runsBy: "ApprovalService/Approve" },
  "reeve.approval.v1.ApprovalService/Deny": stops,
  "reeve.approval.v1.ApprovalService/WatchApprovals": reads,
  "reeve.policy.v1.PolicyService/Authorize": decides,
  "reeve.policy.v1.PolicyService/Explain": reads,
  "reeve.policy.v1.PolicyService/GetPolicy": reads,
  "reeve.key.v1.KeyService/GetGrantKey": reads,
  "reeve.policy.v1.PolicyService/Exchange": decides,
  "reeve.key.v1.KeyService/ListKeys": reads,
  "reeve.key.v1.KeyService/RotateKey": administers,
  "reeve.key.v1.KeyService/GetKeyring": reads,
  "reeve.device.v1.AttachService/Attach": carries,
  "reeve.enrollment.v1.EnrollmentService/CreateJoinToken": administers,
  "reeve.enrollment.v1.EnrollmentService/Join": administers,
  "reeve.enrollment.v1.EnrollmentService/RenewCertificate": administers,
  "reeve.enrollment.v1.EnrollmentService/ListEnrollments": reads,
  "reeve.enrollment.v1.EnrollmentService/ConfirmEnrollment": administers,
  "reeve.enrollment.v1.EnrollmentService/LockDevice": stops,
  "reeve.enrollment.v1.EnrollmentService/UnlockDevice": administers,
  "reeve.enrollment.v1.EnrollmentService/RemoveDevice": stops,
  "reeve.enrollment.v1.AuthorityService/ListAuthorities": reads,
  "reeve.enrollment.v1.AuthorityService/RotateAuthority": administers,
  "reeve.fanout.v1.FanOutService/StartFanOut": { runsBy: "FanOutService/StartFanOut" },
  "reeve.fanout.v1.FanOutService/GetFanOut": reads,
  "reeve.schedule.v1.ScheduleService/CreateSchedule": {
    runsNone: "it only sets times; at them the registry does what RunSchedule has it do now",
  },
  "reeve.schedule.v1.ScheduleService/GetSchedule": reads,
  "reeve.schedule.v1.ScheduleService/ListSchedules": reads,
  "reeve.schedule.v1.ScheduleService/PauseSchedule": stops,
  "reeve.schedule.v1.ScheduleService/ResumeSchedule": {
    runsNone: "it only sets times; at them the registry does what RunSchedule has it do now",
  },
  "reeve.schedule.v1.ScheduleService/DeleteSchedule": stops,
  "reeve.schedule.v1.ScheduleService/RunSchedule": { runsBy: "ScheduleService/RunSchedule" },
  "reeve.fanout.v1.FanOutService/ListFanOuts": reads,
  "reeve.fanout.v1.FanOutService/WatchFanOut": reads,
  "reeve.fanout.v1.FanOutService/CancelFanOut": stops,
  "reeve.device.v1.DeviceService/GetDevice": reads,
  "reeve.device.v1.DeviceService/ListDevices": reads,
  "reeve.capability.v1.CapabilityService/GetCapability": reads,
  "reeve.capability.v1.CapabilityService/ListCapabilities": reads,
  "reeve.tool.v1.ToolService/GetTool": reads,
  "reeve.tool.v1.ToolService/ListTools": reads,
  "reeve.call.v1.CallService/CallTool": { runsBy: "CallService/CallTool" },
  "reeve.call.v1.CallService/CallTools": { runsBy: "CallService/CallTools" },
  "reeve.call.v1.CallService/GetCall": reads,
  "reeve.call.v1.CallService/ListCalls": reads,
  "reeve.call.v1.CallService/WatchCall": reads,
  "reeve.call.v1.CallService/GetCallOutput": reads,
  "reeve.principal.v1.PrincipalService/WhoAmI": reads,
  "reeve.call.v1.CallService/CancelCall": stops,
  "reeve.agent.v1.RunService/StartRun": { runsBy: "RunService/StartRun" },
  "reeve.agent.v1.RunService/GetRun": reads,
  "reeve.agent.v1.RunService/ListRuns": reads,
  "reeve.agent.v1.RunService/WatchRun": reads,
  "reeve.agent.v1.RunService/CancelRun": stops,
  "reeve.agent.v1.RunService/AnswerRun": { runsNone: "it gives a model a person's words, and decides about no call" },
};

/** The package whose RPCs are the tools. The registry serves them, and no other service does. */
export const TOOL_PACKAGE = "reeve.tools.v1";

/** Every RPC of that package. */
export const TOOL_RPCS: Entry = { runsBy: "a tool's own RPC" };

/** Every plain HTTP path that a service or the server itself answers on. */
export const HTTP_PATHS: Readonly<Record<string, Entry>> = {
  "/.well-known/oauth-protected-resource": reads,
  "/.well-known/oauth-protected-resource/mcp": reads,
  "/calls/{id}": reads,
  "/calls/{id}/output": reads,
  "/calls/{id}/events": reads,
  "/healthz": reads,
  "/invoke": { runsBy: "POST /invoke" },
  "/livez": reads,
  "/mcp": { runsBy: ["MCP 2026-07-28", "MCP 2025-11-25"] },
  "/metrics": reads,
  "/readyz": reads,
  "/tools": reads,
};

/** Every command of `reeve`, with its subcommands. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  approval: { runsNone: "its subcommands do" },
  "approval approve": { runsBy: "ApprovalService/Approve" },
  "approval deny": stops,
  "approval list": reads,
  "approval show": reads,
  "approval watch": { runsBy: "ApprovalService/Approve" },
  audit: { runsNone: "its subcommands do" },
  "audit list": reads,
  "audit prove": reads,
  "audit show": reads,
  "audit verify": reads,
  "audit verify-proof": reads,
  call: { runsNone: "its subcommands do" },
  "call cancel": stops,
  "call list": reads,
  "call run": { runsBy: ["reeve call", "reeve call --on"] },
  "call show": reads,
  "call watch": reads,
  job: { runsNone: "its subcommands do" },
  "job list": reads,
  "job status": reads,
  "job output": reads,
  "job cancel": stops,
  capability: { runsNone: "its subcommands do" },
  "capability list": reads,
  "capability show": reads,
  chat: { runsBy: "reeve chat" },
  config: { runsNone: "its subcommands do" },
  "config check": reads,
  "config schema": reads,
  "config show": reads,
  demo: { runsBy: "the model's loop" },
  device: { runsNone: "its subcommands do" },
  "device join": administers,
  "device join-token": administers,
  "device list": reads,
  "device lock": stops,
  "device remove": stops,
  "device show": reads,
  "device unlock": administers,
  doctor: reads,
  enrollment: { runsNone: "its subcommands do" },
  "enrollment confirm": administers,
  "enrollment list": reads,
  fanout: { runsNone: "its subcommands do" },
  agent: { runsNone: "its subcommands do" },
  "agent check": reads,
  "agent list": reads,
  "agent schema": reads,
  "agent show": reads,
  "fanout cancel": stops,
  "fanout list": reads,
  "fanout show": reads,
  "fanout watch": reads,
  schedule: { runsNone: "its subcommands do" },
  "schedule add": { runsNone: "it only sets times; at them the registry does what `schedule run` has it do now" },
  "schedule list": reads,
  "schedule pause": stops,
  "schedule remove": stops,
  "schedule resume": { runsNone: "it only sets times; at them the registry does what `schedule run` has it do now" },
  "schedule run": { runsBy: "reeve schedule run" },
  "schedule show": reads,
  key: { runsNone: "its subcommands do" },
  "key list": reads,
  "key rotate": administers,
  login: administers,
  logout: administers,
  manifest: { runsNone: "its subcommands do" },
  "manifest edit": administers,
  "manifest key": administers,
  "manifest show": reads,
  "manifest sign": administers,
  "manifest verify": reads,
  mcp: { runsBy: ["reeve mcp 2026-07-28", "reeve mcp 2025-11-25"] },
  "mcp config": administers,
  migrate: administers,
  operator: { runsNone: "its subcommands do" },
  "operator passphrase": administers,
  "operator replace": administers,
  "operator seal": administers,
  policy: { runsNone: "its subcommands do" },
  "policy check": reads,
  "policy explain": reads,
  "policy show": reads,
  secret: { runsNone: "its subcommands do" },
  "secret delete": administers,
  "secret list": reads,
  "secret set": { runsNone: "it only keeps what tools may send, to the hosts that it names" },
  plugin: { runsNone: "its subcommands do" },
  "plugin accept": administers,
  "plugin check": reads,
  "plugin list": reads,
  "plugin new": { runsNone: "it only writes the files of a plugin, which its owner has yet to accept" },
  run: { runsNone: "its subcommands do" },
  "run answer": { runsNone: "it gives a model a person's words, and decides about no call" },
  "run cancel": stops,
  "run get": reads,
  "run list": reads,
  "run start": { runsBy: "reeve run start" },
  "run watch": reads,
  serve: { runsNone: "its subcommands do" },
  "serve agent": serves,
  "serve all": serves,
  "serve device": serves,
  "serve policy": serves,
  "serve registry": serves,
  "service-ca": { runsNone: "its subcommands do" },
  "service-ca init": administers,
  "service-ca issue": administers,
  "service-ca show": reads,
  shell: { runsNone: "its subcommands do" },
  "shell check": { runsNone: "analyzes the text of a command" },
  token: { runsNone: "its subcommands do" },
  "token create": administers,
  "token list": reads,
  "token revoke": administers,
  tool: { runsNone: "its subcommands do" },
  "tool list": reads,
  "tool show": reads,
  undo: { runsBy: "reeve call" },
  up: serves,
};

/** A narrow place that every call of a tool comes through: where its words may stand in the product's code. */
export interface Passage {
  what: string;
  words: RegExp;
  /** Files, or folders that end in "/". */
  only: readonly string[];
}

/** From the process that is started, outwards to the callers. */
export const PASSAGES: readonly Passage[] = [
  {
    what: "programs are started by the executor, and on the command line a person's editor and the engine of durable runs",
    words: /["'](?:node:)?(?:child_process|cluster)["']/,
    only: ["services/device-agent/executor/", "cli/manifest/edit.ts", "cli/stack/restate-server.ts"],
  },
  {
    what: "the functions of the tools are put into one list",
    words: /\bbuiltInFamilies\(/,
    only: ["services/device-agent/tools/families.ts", "services/device-agent/providers/builtin/provider.ts"],
  },
  {
    what: "the list is used by the provider of the built-in tools",
    words: /\bcreateToolTable\(/,
    only: ["services/device-agent/providers/builtin/provider.ts"],
  },
  {
    what: "services of the machine are called by a tool, as its function",
    words: /\brpcTool\(/,
    only: ["services/device-agent/providers/grpc/"],
  },
  {
    what: "programs of plugins are run by a tool, as its function",
    words: /\bpluginTool\(/,
    only: ["services/device-agent/providers/plugin/"],
  },
  {
    what: "MCP servers are spoken to where their tools are made",
    words: /@modelcontextprotocol\/client["']|\bcreateMcpServer\(/,
    only: ["services/device-agent/providers/plugin/mcp/"],
  },
  {
    what: "and their tools are made for the provider of plugins",
    words: /\bopenBridge\(|\bbridge\.implement\(/,
    only: ["services/device-agent/providers/plugin/"],
  },
  {
    what: "providers are opened by the machine under the agent",
    words: /\bopen(?:BuiltIn|Grpc|Plugin)Tools\(/,
    only: [
      "services/device-agent/machine.ts",
      "services/device-agent/providers/builtin/provider.ts",
      "services/device-agent/providers/grpc/provider.ts",
      "services/device-agent/providers/plugin/provider.ts",
    ],
  },
  {
    what: "what they provide is joined for the manifest",
    words: /\bcollectTools\(/,
    only: ["services/device-agent/providers/collect.ts", "services/device-agent/toolset.ts"],
  },
  {
    what: "a tool is prepared where the manifest and the blocklist are checked",
    words: /\btool\.prepare\(/,
    only: ["services/device-agent/execute/prepare.ts"],
  },
  {
    what: "tools connect to other machines at addresses that were checked",
    words: /\bresolveHost\(/,
    only: [
      "services/device-agent/hosts/resolve-host.ts",
      "services/device-agent/tools/http/send.ts",
      "services/device-agent/tools/ssh.ts",
    ],
  },
  {
    what: "secrets are resolved where they are sent",
    words: /\bsecrets\.resolve\(/,
    only: [
      "services/device-agent/tools/http/request.ts",
      "services/device-agent/tools/http.ts",
      "services/device-agent/tools/matrix.ts",
    ],
  },
  {
    what: "a tool is run in one place",
    words: /\.run\((?:[^()]*,)?\s*context\s*\)/,
    only: ["services/device-agent/execute/perform.ts"],
  },
  {
    what: "which is reached after the ledger was written",
    words: /\brunTool\(/,
    only: ["services/device-agent/execute/perform.ts"],
  },
  {
    what: "which is reached after the grant was checked",
    words: /\bperform\(/,
    only: ["services/device-agent/execute/perform.ts", "services/device-agent/execute/executions.ts"],
  },
  {
    what: "devices are reached over the network, or in the process that everything runs in",
    words: /\bcreateClient\(\s*DeviceAgentService\b|\bcreateDeviceAgent\(/,
    only: [
      "services/registry/dialers.ts",
      "services/device-agent/main.ts",
      "services/device-agent/service.ts",
      "cli/stack/stack.ts",
    ],
  },
  {
    what: "either way by the links of the registry's fleet",
    words: /\bcreateDeviceLink\(/,
    only: ["services/registry/devices/device-link.ts", "services/registry/devices/fleet.ts"],
  },
  {
    what: "which start what policy has permitted",
    words: /\blink\.start\(/,
    only: ["services/registry/calls/execution.ts", "services/registry/calls/preview.ts"],
  },
  {
    what: "by the one driver of their lifecycle",
    words: /\bexecute\(live,/,
    only: ["services/registry/calls/execution.ts", "services/registry/calls/run.ts"],
  },
  {
    what: "for calls that came through the gate",
    words: /\brunCall\((?:live|one)\b/,
    only: ["services/registry/calls/run.ts", "services/registry/calls/calls.ts"],
  },
  {
    what: "where the faces bring them",
    words: /\bcalls\.begin\(/,
    only: [
      "services/registry/calls/call-tool.ts",
      "services/registry/calls/call-tools.ts",
      "services/registry/fan-out/run.ts",
      "services/registry/schedules/fire.ts",
    ],
  },
];
