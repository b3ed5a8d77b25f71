/** The agent's version, as its manifest states it. A test keeps it equal to the package's. */
export const AGENT_VERSION = "0.1.0";
