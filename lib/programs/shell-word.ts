/** A word as a shell of POSIX reads it back, whatever it holds but NUL. */
export function shellWord(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
