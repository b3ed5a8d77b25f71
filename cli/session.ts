import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { type RegistryClient, registryClient } from "../client/registry.ts";
import { RunService } from "../gen/ts/reeve/agent/v1/run_service_pb.ts";
import { ApprovalService } from "../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { AuthorityService } from "../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { EnrollmentService } from "../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { FanOutService } from "../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { KeyService } from "../gen/ts/reeve/key/v1/key_service_pb.ts";
import { PolicyService } from "../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { ScheduleService } from "../gen/ts/reeve/schedule/v1/schedule_service_pb.ts";
import { createServiceTransport } from "../lib/rpc-client/transport.ts";
import { readCaFile } from "./ca-file.ts";
import type { CommandContext } from "./command-context.ts";
import { UsageError } from "./errors/usage-error.ts";
import { findTarget } from "./find-target.ts";
import { type Presence, passphrasePresence } from "./operator/passphrase.ts";
import { dataDir } from "./profile.ts";
import type { Target, TargetFlags } from "./target.ts";

/** A command's clients. */
export interface Session {
  readonly registry: RegistryClient;
  readonly fanOut: Client<typeof FanOutService>;
  readonly schedules: Client<typeof ScheduleService>;
  readonly enrollment: Client<typeof EnrollmentService>;
  readonly authorities: Client<typeof AuthorityService>;
  readonly approvals: Client<typeof ApprovalService>;
  readonly policy: Client<typeof PolicyService>;
  readonly audit: Client<typeof AuditService>;
  readonly keys: Client<typeof KeyService>;
  /** Its calls throw a UsageError where the address of the agent service is not known. */
  readonly runs: Client<typeof RunService>;
  /** False where the address of policy is not known: then its clients throw a UsageError. */
  readonly hasPolicy: boolean;
  /** How to act as an operator on the same control plane. */
  readonly operator: OperatorAccess;
  /** The local state folder, where the control plane is this machine's own. */
  readonly stateDir: string | undefined;
  close(): void;
}

/** How a command acts as an operator: approves, locks, issues. */
export interface OperatorAccess {
  /** True: `open` asks nothing, and gives the session that the command has already, or one that was proven. */
  readonly isOpen: boolean;
  /** False where `open` is known to fail, so that no question is asked in vain. */
  isPossible(): Promise<boolean>;
  /** The same control plane as an operator. Throws a UsageError that says what to do where that cannot be. */
  open(): Promise<Session>;
  close(): void;
}

/**
 * Finds out where to go and makes the clients; nothing is dialed yet. Warnings go to standard error. The profile's token
 * is no operator's: then a person has to prove presence before something is done as an operator.
 */
export async function openSession(context: CommandContext, flags: TargetFlags): Promise<Session> {
  const target = await findTarget(context, flags);
  for (const warning of target.warnings) context.stderr.write(`reeve: ${warning}\n`);
  const session = sessionAt(target);
  if (target.origin !== "profile") return session;
  const presence = passphrasePresence(context, dataDir(context.env));
  const operator = operatorByPresence(presence, (token) => sessionAt({ ...target, token }));
  const close = () => {
    operator.close();
    session.close();
  };
  return { ...session, operator, close };
}

/** Clients of a known target. Throws a UsageError where its file of authorities cannot be read. */
export function sessionAt({ registry, policy, agent, token, stateDir, caFile, sockets }: Target): Session {
  const ca = caFile === undefined ? undefined : readCaFile(caFile);
  const dial = (baseUrl: string | undefined, socketPath: string | undefined) =>
    baseUrl === undefined ? undefined : createServiceTransport({ baseUrl, socketPath, token, ca });
  const transports = [dial(registry, sockets?.registry), dial(policy, sockets?.policy), dial(agent, sockets?.agent)];
  const [first, second, third] = transports;
  const session: Session = {
    ...sessionOver({ registry: first ?? nowhere, policy: second, agent: third }),
    operator: operatorItself(() => session),
    stateDir,
    close() {
      for (const transport of transports) transport?.close();
    },
  };
  return session;
}

/** Clients over transports of the caller's own, such as in-memory ones. */
export function sessionOver(transports: {
  registry: Transport;
  policy: Transport | undefined;
  agent?: Transport | undefined;
}): Session {
  const { registry, policy = nowhere, agent = noAgentService } = transports;
  const session: Session = {
    registry: registryClient(registry),
    fanOut: createClient(FanOutService, registry),
    schedules: createClient(ScheduleService, registry),
    enrollment: createClient(EnrollmentService, registry),
    authorities: createClient(AuthorityService, registry),
    approvals: createClient(ApprovalService, policy),
    policy: createClient(PolicyService, policy),
    audit: createClient(AuditService, policy),
    keys: createClient(KeyService, policy),
    runs: createClient(RunService, agent),
    hasPolicy: transports.policy !== undefined,
    operator: operatorItself(() => session),
    stateDir: undefined,
    close: () => undefined,
  };
  return session;
}

/** Access for a caller that brought its own token or login: the control plane knows whether that is an operator's. */
export function operatorItself(session: () => Session): OperatorAccess {
  return {
    isOpen: true,
    isPossible: () => Promise.resolve(true),
    open: async () => session(),
    close: () => undefined,
  };
}

/** Access by presence, which is proven once. */
export function operatorByPresence(presence: Presence, connect: (token: string) => Session): OperatorAccess {
  let proven: Session | undefined;
  let proving: Promise<Session> | undefined;
  return {
    get isOpen() {
      return proven !== undefined;
    },
    isPossible: async () => proven !== undefined || (await presence.isPossible()),
    open() {
      proving ??= presence
        .token()
        .then((token) => {
          proven = connect(token);
          return proven;
        })
        .finally(() => {
          if (proven === undefined) proving = undefined;
        });
      return proving;
    },
    close: () => proven?.close(),
  };
}

const nowhere = unknownAddress("policy", ["set REEVE_POLICY_URL, or use --policy URL"]);
const noAgentService = unknownAddress("the agent service", [
  "start `reeve up` again, or set REEVE_AGENT_URL and REEVE_TOKEN",
]);

function unknownAddress(what: string, hints: string[]): Transport {
  const refuse = () => Promise.reject(new UsageError(`it is not known where ${what} is`, hints));
  return { unary: refuse, stream: refuse };
}
