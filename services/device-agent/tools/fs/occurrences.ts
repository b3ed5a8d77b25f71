/**
 * Where a text stands in another, overlapping ones too; at most `most` of them. By Knuth, Morris and Pratt: it takes time
 * linear in both, whatever they are. The engine's own search is quadratic for texts that are made for that.
 */
export function occurrences(text: string, wanted: string, most: number): number[] {
  const found: number[] = [];
  if (wanted === "") return found;
  const back = failureTable(wanted);
  let matched = 0;
  for (let at = 0; at < text.length && found.length < most; at++) {
    const unit = text.charCodeAt(at);
    while (matched > 0 && wanted.charCodeAt(matched) !== unit) matched = back[matched - 1] ?? 0;
    if (wanted.charCodeAt(matched) === unit) matched++;
    if (matched < wanted.length) continue;
    found.push(at - wanted.length + 1);
    matched = back[matched - 1] ?? 0;
  }
  return found;
}

/** For each beginning of the text: the length of its longest proper beginning that is its end too. */
function failureTable(text: string): Int32Array {
  const table = new Int32Array(text.length);
  for (let at = 1, matched = 0; at < text.length; at++) {
    while (matched > 0 && text.charCodeAt(at) !== text.charCodeAt(matched)) matched = table[matched - 1] ?? 0;
    if (text.charCodeAt(at) === text.charCodeAt(matched)) matched++;
    table[at] = matched;
  }
  return table;
}
