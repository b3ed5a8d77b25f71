export interface DescribedTool {
  description: string;
  /** The capability that the tool needs, such as "shell.exec". */
  capability: string;
  /** Every call waits for a human. */
  requiresApproval: boolean;
}

/**
 * A tool's description as a model reads it: the tool's own sentences and a marker by which remote tools are known at a
 * glance, "[device_mesh: shell.exec]", followed by "(approval required)" where every call waits for a human.
 */
export function describeTool(tool: DescribedTool): string {
  const marker = `[device_mesh: ${tool.capability}]`;
  const text = [tool.description.trim(), marker].filter((part) => part !== "").join(" ");
  return tool.requiresApproval ? `${text} (approval required)` : text;
}
