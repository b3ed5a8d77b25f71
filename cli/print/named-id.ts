/** A name with the id that it belongs to, such as "agent (5bb3ba4a590a)"; the id alone where there is no other name. */
export function namedId(name: string, id: string): string {
  return name === "" || name === id ? id : `${name} (${id})`;
}

/** The name, where there is one: for tables, in which ids have no room. */
export function nameOr(name: string, id: string): string {
  return name === "" ? id : name;
}
