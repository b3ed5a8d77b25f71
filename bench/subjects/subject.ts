import type { Usage } from "../measure/server-process.ts";

/** Something to measure: one kind of call. */
export interface Subject {
  name: string;
  /** The subjects that it is compared with, which do the same work. Default none: it is not compared. */
  against?: readonly string[];
  call(): Promise<void>;
  /** What its servers have used. Default nothing. */
  usage?(): Promise<Usage>;
}

/** Subjects that are measured together, round by round. */
export interface Section {
  name: string;
  /** In a few words, for the table's head. */
  title: string;
  /** Starts what the subjects need. What `parts` disposes of ends with the section. */
  open(parts: AsyncDisposableStack, onStep: (text: string) => void): Promise<Subject[]>;
}
