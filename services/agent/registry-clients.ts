import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { createServiceTransport, type ServiceTransport } from "../../lib/rpc-client/transport.ts";
import { agentToken } from "./agent-file/agent-token.ts";
import { loadAgents } from "./agent-file/load-agents.ts";

/** How the agent service reaches the registry, and as whom. */
export interface RegistryAccess {
  /** Where the registry listens. Asked when it is dialed first. */
  url(): string;
  /** The authorities that an https address is trusted by, PEM. Default: the system's. */
  ca?: string;
  /** The service's own token, an agent's. Asked when it is needed first. */
  token(): Promise<string>;
  /** A token with the role trigger and no other, for runs over untrusted content. Undefined: they call nothing. */
  triggerToken(): Promise<string | undefined>;
}

/** Clients of the registry, one for each token. */
export interface RegistryClients {
  /** As an agent's calls reach the registry: with the token of its file, else the service's own. */
  of(agent: string): Promise<RegistryClient>;
  /**
   * As a run's calls reach the registry: as its agent's. Those of a run over untrusted content have no right to call any tool;
   * rejects where there is no token for that.
   */
  ofRun(run: { untrusted: boolean }, agent: string): Promise<RegistryClient>;
  close(): void;
}

/** Dials when a client is used first. */
export function createRegistryClients(
  { url, ca, token, triggerToken }: RegistryAccess,
  { agentsDir, env }: { agentsDir: string; env: Readonly<Record<string, string | undefined>> },
): RegistryClients {
  const byToken = new Map<string, { client: RegistryClient; transport: ServiceTransport }>();
  const dial = (own: string): RegistryClient => {
    const known = byToken.get(own);
    if (known !== undefined) return known.client;
    const transport = createServiceTransport({ baseUrl: url(), token: own, ...(ca !== undefined && { ca }) });
    const client = registryClient(transport);
    byToken.set(own, { client, transport });
    return client;
  };
  const of = async (name: string): Promise<RegistryClient> => {
    const agent = name === "" ? undefined : (await loadAgents(agentsDir, env)).agents.get(name);
    if (name !== "" && agent === undefined) throw new Error(`there is no agent ${name} any more`);
    return dial((agent && agentToken(agent, env)) ?? (await token()));
  };
  const untrusted = async (): Promise<RegistryClient> => {
    const own = await triggerToken();
    if (own === undefined) throw new Error("there is no token with the role trigger");
    return dial(own);
  };
  return {
    of,
    ofRun: (run, agent) => (run.untrusted ? untrusted() : of(agent)),
    close() {
      for (const { transport } of byToken.values()) transport.close();
      byToken.clear();
    },
  };
}
