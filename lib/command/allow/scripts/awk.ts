const FUNCTIONS = new Set(
  "length substr index split sub gsub match toupper tolower sprintf int sqrt log exp sin cos atan2 gensub strftime systime mktime".split(
    " ",
  ),
);

const WORDS = new Set("BEGIN END print printf if else for in while do break continue next exit delete".split(" "));

/** Variables of awk that may be read and set. Others in capitals may mean something to one awk or another. */
const VARIABLES = new Set("NR NF FS OFS ORS RS FNR FILENAME SUBSEP RSTART RLENGTH OFMT".split(" "));

const TOKEN =
  /^(?:(\s+|#[^\n]*)|([A-Za-z_]\w*)(\s*\()?|(\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+)|"((?:[^"\\\n]|\\[^\n])*)"|(\+\+|--|&&|\|\||[-+*/%^<>=!]=|!~|[-+*/%^<>=!~?:,;(){}[\]$]))/;

/** A token behind which "/" divides; behind any other a pattern begins. */
const VALUE = /[\w)\]"$]$/;

/**
 * True for an awk program that only looks at its input and prints: no pipes, no files to write, no getline, no system, no
 * functions but those that compute. The output operator ">" may not stand behind print.
 */
export function isReadingAwk(program: string): boolean {
  let rest = program;
  let before = "";
  let depth = 0;
  let prints = false;
  while (rest !== "") {
    const regexp = rest.startsWith("/") && !VALUE.test(before) ? /^\/(?:[^/\\\n]|\\[^\n])*\//.exec(rest) : null;
    if (regexp !== null) {
      before = "/";
      rest = rest.slice(regexp[0].length);
      continue;
    }
    const match = TOKEN.exec(rest);
    if (match === null) return false;
    const [whole, blank, name, calls, , , operator] = match;
    rest = rest.slice(name === undefined ? whole.length : name.length);
    if (blank !== undefined) {
      if (blank.includes("\n") && depth === 0) prints = false;
      continue;
    }
    if (name !== undefined) {
      if (!isKnown(name, calls !== undefined)) return false;
      if (name === "print" || name === "printf") prints = true;
    }
    if (operator === "(") depth += 1;
    if (operator === ")") depth -= 1;
    if (operator !== undefined && /^[;{}]$/.test(operator)) prints = false;
    if (operator === ">" && prints && depth <= 0) return false;
    before = whole.trimEnd();
  }
  return true;
}

function isKnown(name: string, calls: boolean): boolean {
  if (WORDS.has(name)) return true;
  if (calls) return FUNCTIONS.has(name);
  if (FUNCTIONS.has(name)) return name === "length";
  return (
    VARIABLES.has(name) ||
    (/^[a-z_]\w*$/.test(name) &&
      !/^(?:getline|system|function|func|close|fflush|nextfile|printf?|switch|case|default|return)$/.test(name))
  );
}
