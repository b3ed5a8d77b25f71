/** A generator of numbers in [0, 1) that the seed decides (mulberry32). */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** What a shell acts on, and words that change what a text runs. */
const PIECES =
  `; & | && || |& \n \r \t ( ) { } [ ] [[ ]] < > >> << <<< <( >( >& <& &> >| <> 2>&1 <&- <&-x ' " \` \\ $ $( \${ $' $" $(( )) \`id\` $(id) <(id)
  * ? ~ ! # = : , .. {a,b} {1..3} - -- -e -o -x -c -f -- /dev/null id rm sh eval exec source . command builtin env sudo xargs find
  x=1 PATH=. LD_PRELOAD=x \\\n time coproc function if then fi for in do done while case esac select \u00a0 \u200b \0 \x0b
  -exec -delete --output=x --pre=id -i IFS HOME x y a.txt /etc/hosts | head`.split(/ +|\n {2}/);

/** A text that differs from `text` in one to four places. */
export function mutate(text: string, others: readonly string[], next: () => number): string {
  const pick = <T>(values: readonly T[]): T => values[Math.floor(next() * values.length)] as T;
  let mutant = text;
  const times = 1 + Math.floor(next() * 4);
  for (let time = 0; time < times; time++) {
    const at = Math.floor(next() * (mutant.length + 1));
    const end = Math.min(mutant.length, at + 1 + Math.floor(next() * 4));
    const other = pick(others);
    const start = Math.floor(next() * other.length);
    mutant = pick<() => string>([
      () => mutant.slice(0, at) + pick(PIECES) + mutant.slice(at),
      () => `${mutant.slice(0, at)} ${pick(PIECES)} ${mutant.slice(at)}`,
      () => mutant.slice(0, at) + mutant.slice(end),
      () => mutant.slice(0, at) + pick(PIECES) + mutant.slice(end),
      () => mutant.slice(0, at) + other.slice(start, start + 12) + mutant.slice(at),
      () => mutant.slice(0, at) + mutant.slice(at, end).repeat(2) + mutant.slice(end),
      () => `${mutant}${pick([";", "|", "&&", "||", "\n", " "])}${other}`,
    ])();
  }
  return mutant.slice(0, 2000);
}
