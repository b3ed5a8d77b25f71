/** A variable of the agent's environment in a text, or a piece of text as it is. */
export type EnvPart = string | { variable: string };

const NAME = /^[A-Za-z_]\w*$/;

/** True for a name that every shell can export. */
export function isVariableName(name: string): boolean {
  return NAME.test(name);
}

/** True for what belongs to Reeve, such as its tokens: no plugin is given it, and none sets it. */
export function isReeveVariable(name: string): boolean {
  return name.toUpperCase().startsWith("REEVE_");
}

const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;

/**
 * A text with its references to variables: `${NAME}` stands for the variable, `$${` for the two characters `${`, and everything
 * else for itself. Throws an Error that says what is wrong with a reference. Pure.
 */
export function parseEnvTemplate(text: string): EnvPart[] {
  const parts: EnvPart[] = [];
  let from = 0;
  for (const match of text.matchAll(REFERENCE)) {
    parts.push(text.slice(from, match.index));
    from = match.index + match[0].length;
    const [whole, name = "", end] = match;
    if (whole === "$${") parts.push("${");
    else if (end === "") throw new Error('"${" has no end; "$${" stands for these two characters');
    else if (!isVariableName(name)) throw new Error(`"${name}" in "\${…}" is no name of a variable`);
    else parts.push({ variable: name });
  }
  parts.push(text.slice(from));
  return parts.filter((part) => part !== "");
}

/** The names of the variables in a text. */
export function variablesIn(parts: readonly EnvPart[]): string[] {
  return parts.flatMap((part) => (typeof part === "string" ? [] : part.variable));
}

/** The text with the variables' values. Every variable has to be set: see variablesIn. */
export function expandEnv(parts: readonly EnvPart[], env: Readonly<Record<string, string | undefined>>): string {
  return parts.map((part) => (typeof part === "string" ? part : (env[part.variable] ?? ""))).join("");
}
