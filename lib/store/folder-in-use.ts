import { hostname } from "node:os";

/** What the holder of a folder has written down about itself. Only for messages: the lock does not depend on it. */
export interface FolderHolder {
  readonly program: string;
  readonly pid: number;
  /** The machine, or the container, that the pid belongs to. */
  readonly host: string;
  /** When it took the folder, ISO 8601. */
  readonly since: string;
  /** Where it listens, once it does. */
  readonly url?: string;
}

/** Another process has the folder. Nothing in it was read or changed. */
export class FolderInUse extends Error {
  override readonly name = "FolderInUse";
  readonly folder: string;
  readonly setting: string;
  /** Undefined where the holder has not written itself down yet. */
  readonly holder: FolderHolder | undefined;

  constructor(folder: string, setting: string, holder: FolderHolder | undefined) {
    super(
      `${holder?.program ?? "another process"} is already running${placeOf(holder)}, and the folder ${folder} belongs to it`,
    );
    this.folder = folder;
    this.setting = setting;
    this.holder = holder;
  }
}

function placeOf(holder: FolderHolder | undefined): string {
  if (holder === undefined) return "";
  const machine = holder.host === hostname() ? "" : ` on ${holder.host}`;
  return `${holder.url === undefined ? "" : ` at ${holder.url}`} (pid ${holder.pid}${machine})`;
}
