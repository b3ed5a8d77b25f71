/** The longest name that is kept beside an id, in UTF-16 code units. */
const MAX_NAME = 128;

/** A name of a person or device as it is kept beside their id: for people to read, and bounded. */
export function shortName(name: string): string {
  return name.length <= MAX_NAME ? name : `${name.slice(0, MAX_NAME - 1)}…`;
}
