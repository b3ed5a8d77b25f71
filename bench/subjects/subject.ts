import type { Usage } from "../measure/server-process.ts";

/** Something to measure: one kind of call. */
export interface Subject {
  name: string;
  /** Which other subjects it is compared with: those that do the same work. */
  work: "noop" | "exec";
  call(): Promise<void>;
  /** What its server has used; zero where there is none. */
  usage(): Promise<Usage>;
}
