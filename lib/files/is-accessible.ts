import { accessSync } from "node:fs";

/** Whether this process may use a path so: a mode of node:fs, such as constants.X_OK. False where it does not exist. */
export function isAccessible(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
