/** What the device's manifest grants of the file system. */
export interface RootsOptions {
  /** Absolute paths of folders that may be read, with all below them. */
  read: readonly string[];
  /** Absolute paths of folders that may be written and read, with all below them. */
  write: readonly string[];
  /** The folder that programs run in where none is asked for. Must lie in a root. Undefined only where there is none. */
  workDir: string | undefined;
  /** Folders that no tool that takes a path may touch although they lie in a root, such as the agent's own state. Default none. */
  deny?: readonly string[];
  /** How paths are walked. Default "descriptors" on Linux and "paths" elsewhere, which leaves a race: see pathWalker. */
  walk?: "descriptors" | "paths";
}
