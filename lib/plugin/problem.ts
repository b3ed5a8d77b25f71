/** One thing that is wrong with a plugin. */
export interface PluginProblem {
  /** The line of its plugin.json, from 1; undefined where the folder is wrong and not the file. */
  line: number | undefined;
  /** What is wrong and, where it helps, what would be right. */
  message: string;
}

/** A problem in one line, such as `plugin.json, line 12: timeout_seconds must be a whole number`. */
export function problemText({ line, message }: PluginProblem): string {
  return line === undefined ? message : `plugin.json, line ${line}: ${message}`;
}
