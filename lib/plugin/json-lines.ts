/** One step into a JSON document: a key of an object, or an index of an array. */
export type JsonStep = string | number;

/** The line that a place of a JSON document begins on, from 1; of the nearest place around it where there is no such place. */
export type JsonLines = (path: readonly JsonStep[]) => number;

/** A container that is open: the key or index that is being read in it; undefined where a key comes next. */
interface Frame {
  isObject: boolean;
  step: JsonStep | undefined;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+|\n/g;

/** Where everything in a JSON document stands. The text must be valid JSON. A member of an object stands where its key does. */
export function jsonLines(text: string): JsonLines {
  const lines = new Map<string, number>();
  const open: Frame[] = [];
  const mark = (line: number): void => {
    const key = JSON.stringify(open.map(({ step }) => step));
    if (!lines.has(key)) lines.set(key, line);
  };
  let line = 1;
  for (const { 0: token } of text.matchAll(TOKENS)) {
    const frame = open.at(-1);
    if (token === "\n") line++;
    else if (token === ",") advance(frame);
    else if (token === "}" || token === "]") open.pop();
    else if (frame?.isObject && frame.step === undefined) {
      frame.step = JSON.parse(token) as string;
      mark(line);
    } else if (token !== ":") {
      mark(line);
      if (token === "{") open.push({ isObject: true, step: undefined });
      if (token === "[") open.push({ isObject: false, step: 0 });
    }
  }
  return (path) => {
    for (let length = path.length; length > 0; length--) {
      const found = lines.get(JSON.stringify(path.slice(0, length)));
      if (found !== undefined) return found;
    }
    return lines.get("[]") ?? 1;
  };
}

/** Goes on to the next key or index. */
function advance(frame: Frame | undefined): void {
  if (frame !== undefined) frame.step = typeof frame.step === "number" ? frame.step + 1 : undefined;
}
