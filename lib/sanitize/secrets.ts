import { RULES } from "./secret-rules.ts";

/** A part of a text that is a secret. */
export interface SecretSpan {
  start: number;
  end: number;
  /** What kind, such as "github_token". */
  kind: string;
}

const HINT = new RegExp([...new Set(RULES.map((each) => each.hint.source))].join("|"));

/** The fewest characters that a secret has with what it is known by: keys of JSON are not looked at for nothing. */
const SHORTEST = 8;

/** The secrets of a text, in order, without overlaps. Linear in the length of the text. */
export function findSecrets(text: string): SecretSpan[] {
  if (text.length < SHORTEST || !HINT.test(text)) return [];
  const spans: SecretSpan[] = [];
  for (const { kind, hint, pattern } of RULES) {
    if (!hint.test(text)) continue;
    for (const match of text.matchAll(pattern)) {
      const [start, end] = match.indices?.groups?.secret ?? [match.index, match.index + match[0].length];
      spans.push({ start, end, kind });
    }
  }
  return withoutOverlaps(spans);
}

/** Puts "[redacted: kind]" in the place of each secret. */
export function redactSpans(text: string, spans: readonly SecretSpan[]): string {
  let result = "";
  let from = 0;
  for (const span of spans) {
    result += `${text.slice(from, span.start)}[redacted: ${span.kind}]`;
    from = span.end;
  }
  return result + text.slice(from);
}

function withoutOverlaps(spans: SecretSpan[]): SecretSpan[] {
  const kept: SecretSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.start - b.start)) {
    const last = kept.at(-1);
    if (last !== undefined && span.start < last.end) last.end = Math.max(last.end, span.end);
    else kept.push({ ...span });
  }
  return kept;
}
