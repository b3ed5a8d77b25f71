/** A file to look at: its path from the repository's root, with slashes, and its text. */
export interface SourceFile {
  path: string;
  text: string;
}

/** Whether a file is a test or only for tests: it is not published, so it may import more. */
export function isTest(path: string): boolean {
  return /\.(?:test|testdata|fixture)\.ts$|\/(?:testdata|testing)\//.test(path);
}
