/** True where one of the short options (letters) or long options is among the words. Bundles and "=value" count. */
export function hasOption(args: readonly string[], letters: string, ...long: string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) => {
    if (/^-[A-Za-z]/.test(word)) return Array.from(word.slice(1)).some((letter) => letters.includes(letter));
    const name = word.replace(/=.*$/s, "");
    // GNU programs take any beginning of a long option that is not ambiguous.
    return name.startsWith("--") && name.length > 3 && long.some((each) => each.startsWith(name));
  });
}

/** The words that are no options. After "--" all are. */
export function operands(args: readonly string[]): string[] {
  const end = args.indexOf("--");
  const before = (end < 0 ? args : args.slice(0, end)).filter((word) => !word.startsWith("-") || word === "-");
  return end < 0 ? before : [...before, ...args.slice(end + 1)];
}

/** Programs that find names, and what they search. */
export function searchedFolders(args: readonly string[]): string[] {
  const end = args.findIndex((word) => /^(?:-[a-zA-Z]{2,}|[()!,])/.test(word));
  const folders = (end < 0 ? args : args.slice(0, end)).filter((word) => !word.startsWith("-"));
  return folders.length === 0 ? ["."] : folders;
}

/** True for a search that a test on names, owners or the like narrows. Tests that nearly all files pass do not. */
export function isNarrowed(args: readonly string[]): boolean {
  return args.some((word, at) => {
    if (
      !/^-(?:i?name|i?path|i?wholename|i?regex|i?lname|empty|inum|samefile|user|group|uid|gid|newer\w*|nouser|nogroup)$/.test(
        word,
      )
    )
      return false;
    const negated = args[at - 1] === "!" || args[at - 1] === "-not";
    return !negated && !/^[.*]*\*[.*]*$/.test(args[at + 1] ?? "");
  });
}
