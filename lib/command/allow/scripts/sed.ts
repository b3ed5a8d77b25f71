/** Addresses before a command: lines, the last one, patterns, steps; with "!" behind. */
const ADDRESS = /^(?:\d+(?:~\d+)?|\$|\/(?:[^/\\\n]|\\[^\n])*\/I?)/;

/**
 * True for a sed script that only prints, deletes and replaces: p, d, q, =, n, N, D, P, G, H, h, g, x, l, s and y, alone or in
 * groups. Not w, r, e, a file behind s///w, labels, or text.
 */
export function isReadingSed(script: string): boolean {
  let rest = script;
  let depth = 0;
  while (rest !== "") {
    rest = rest.replace(/^[\s;]+/, "");
    if (rest === "") break;
    if (rest.startsWith("}")) {
      depth -= 1;
      rest = rest.slice(1);
      continue;
    }
    rest = behindAddresses(rest);
    const command = rest[0] ?? "";
    if (command === "{") {
      depth += 1;
      rest = rest.slice(1);
      continue;
    }
    const length = command === "s" || command === "y" ? replacement(rest) : /^[pdqQ=nNDPGHhgxl]/.test(rest) ? 1 : 0;
    if (length === 0) return false;
    rest = rest.slice(length).replace(/^[ \t]*(?:(?<=[qQl][ \t]*)\d+)?/, "");
    if (rest !== "" && !/^[ \t]*[;\n}]/.test(rest)) return false;
  }
  return depth === 0;
}

function behindAddresses(text: string): string {
  const first = ADDRESS.exec(text);
  if (first === null) return text.replace(/^!\s*/, "");
  let rest = text.slice(first[0].length).replace(/^[ \t]+/, "");
  if (rest.startsWith(",")) {
    rest = rest.slice(1).replace(/^[ \t]+/, "");
    const second = /^[+~]\d+/.exec(rest) ?? ADDRESS.exec(rest);
    if (second === null) return "";
    rest = rest.slice(second[0].length);
  }
  return rest.replace(/^[ \t]*!?[ \t]*/, "");
}

/** The length of "s/a/b/flags"; 0 where it is not complete, or has a flag that writes or runs. */
function replacement(text: string): number {
  const delimiter = text[1] ?? "";
  if (!/^[/|,:#@!%_=;~+^]$/.test(delimiter)) return 0;
  let at = 2;
  for (let part = 0; part < 2; part++) {
    while (at < text.length && text[at] !== delimiter) {
      if (text[at] === "\n") return 0;
      at += text[at] === "\\" ? 2 : 1;
    }
    if (text[at] !== delimiter) return 0;
    at += 1;
  }
  const flags = /^[gpiI0-9]*/.exec(text.slice(at))?.[0] ?? "";
  return at + (text.startsWith("y") ? 0 : flags.length);
}
