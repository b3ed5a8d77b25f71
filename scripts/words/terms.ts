/** A way of speaking that the glossary has replaced. */
export interface Term {
  /** Matched against a line as `plainWords` gives it: lower case, the parts of an identifier as words of their own. */
  pattern: RegExp;
  /** What to say instead. */
  better: string;
}

/** The terms that the glossary has retired. Ordinary English that only looks like one of them does not match. */
export const RETIRED: readonly Term[] = [
  { pattern: /(?<!tclsh )\bwish(?:es|ed)?\b/, better: "request, call request" },
  { pattern: /(?<!half )\blife\b(?! cycle| time)|\bit lives\b/, better: "lifecycle, state, liveness" },
  { pattern: /\bways? of (?:a|the|its|each|one) calls?\b/, better: "lifecycle" },
  { pattern: /\bkept calls?\b/, better: "queued call" },
  { pattern: /\bsomebody\b|(?<!["\x27]|or )\bnobody\b(?!["\x27])/, better: "principal, caller, no caller" },
  { pattern: /\bwho(?:m|so)?ever\b/, better: "the caller, any replica, the holder" },
  { pattern: /\bdoors?\b/, better: "ingress, listener" },
  { pattern: /\bjudg(?:e|es|ed|ing|e?ment|e?ments)\b/, better: "evaluate, decide" },
  { pattern: /\b(?:about|decide|asks?) whole\b|(?<!\ba )\bwhole request\b/, better: "fan-out, validated request" },
  { pattern: /\bthe whole\b(?!,? [a-z])/, better: "the fan-out, all of it" },
  { pattern: /\bcards?\b/, better: "approval summary" },
  {
    pattern: /\breject(?:s|ed|ion|ing)? (?:by|of) (?:a|an|the) (?:person|approver|operator|approval)\b/,
    better: "deny",
  },
  {
    pattern:
      /\b(?:approval|approver|person|operator|decision|status|state)s? (?:is |was |be |has |have )?reject(?:s|ed|ion)?\b/,
    better: "deny",
  },
  { pattern: /\bon (?:its|their|the) way\b/, better: "dispatched, in flight" },
  { pattern: /\bsettl(?:e|es|er|ing|ement)\b/, better: "reconcile" },
  { pattern: /\bt(?:ake|akes|aken|aking|ook) (?:\w+ ){0,2}up\b/, better: "resume" },
  { pattern: /\bt(?:ake|akes|aken|aking|ook) (?:\w+ ){0,2}over\b|\btakeover\b/, better: "claim" },
  { pattern: /\badopt(?:s|ed|er|ing|ion)?\b/, better: "claim" },
  { pattern: /\bleadership\b|\bwho leads\b/, better: "ownership" },
  { pattern: /\bthose that are there\b/, better: "members" },
  // But for the name of a tool that the conformance suite of MCP calls.
  { pattern: /\bgreet(?:s|ed|ing|ings)?\b(?!: \{ input)/, better: "handshake" },
  { pattern: /\bshow(?:s|n|ed|ing)? (?:no |signs? of )?life\b/, better: "liveness" },
  { pattern: /\bwelcom(?:e|es|ed|ing)\b/, better: "admit, admission" },
  { pattern: /\bstandings?\b/, better: "admission, status" },
  { pattern: /\bsuspicions?\b/, better: "counter of failures, admission" },
  { pattern: /\bbeat(?:s|en|ing)?\b/, better: "heartbeat" },
  { pattern: /\bseal(?:s|ed)? messages?\b/, better: "authenticate, signed message" },
  { pattern: /\b(?:tell|tells|telling|told)\b/, better: "return, report, notify, distinguish" },
  { pattern: /\bhear(?:s|d|ing)?\b/, better: "receive, subscribe" },
  { pattern: /\bnudg(?:e|es|ed|ing)\b/, better: "notify, wake" },
  { pattern: /\bopeners?\b/, better: "dialer, stream factory" },
  {
    pattern: /(?<!\b(?:right|far|thr[eo]wn?s?|tak(?:e|es|en|ing)|carry|clean(?:s|ed)?|cut|put) (?:\w+ )?)\baway\b/,
    better: "offline, unavailable",
  },
  {
    pattern:
      /\b(?:is|are|be|was|were|been|gets?) (?:not |still |now |yet |already |always )*there\b(?! (?:a|an|any|no|is|are)\b)/,
    better: "available, online, exists",
  },
  { pattern: /(?<!\bthere )\b(?:is|are|be|was|were) none\b(?! of)/, better: "is invalid, is absent" },
  { pattern: /\bin force\b/, better: "active" },
  { pattern: /\bno good\b/, better: "invalid, expired" },
  { pattern: /\bbr(?:eak|eaks|oke|oken|eaking) (?:\w+ )?off\b/, better: "fail, abort, interrupt" },
  { pattern: /(?<!\bencrypt\w* |\bdata |\bsecrets? |\bseal\w* )\bat rest\b/, better: "settled" },
  { pattern: /\brests? on\b/, better: "dependencies of" },
  { pattern: /\bwho (?:acts|asks)\b/, better: "executor, caller, principal" },
  { pattern: /\bwhat exists\b/, better: "inventory" },
];

const BRITISH_VERBS =
  "authori|saniti|recogni|normali|seriali|canonicali|initiali|synchroni|organi|summari|minimi|maximi|optimi|finali|capitali|tokeni|memoi|prioriti|utili|reali|categori|visuali|generali|speciali|customi|deseriali|randomi|materiali|centrali|locali|apologi|emphasi|characteri|penali|standardi|stabili|parameteri|paralleli";

/** British spellings, where the field (and gRPC) writes American. */
export const BRITISH: readonly Term[] = [
  { pattern: /\benrol(?:s|ment|ments)?\b/, better: "enroll, enrollment" },
  // But for what MCP has named so: a notification, and the status of a task.
  { pattern: /(?<!notifications\/|status: "|\| ")\bcancell(?:ed|ing|er|able)\b/, better: "canceled, canceling" },
  {
    pattern: new RegExp(`\\b(?:un|re|de)?(?:${BRITISH_VERBS})s(?:e|es|ed|er|ers|ing|able|ation|ations)\\b`),
    better: "…ize",
  },
  { pattern: /\b(?:analys|catalys|paralys)(?:e|es|ed|ing)\b(?<!analyses)/, better: "…yze" },
  { pattern: /\b(?:behavi|col|hon|fav|neighb|lab|hum|rum|endeav)our(?:s|ed|ing|ful|able|ite|hood)?\b/, better: "…or" },
  {
    pattern:
      /\b(?:label|signal|travel|model|marshal|tunnel|channel|level|total|dial|unravel|initial|counsel|equal)l(?:ed|ing|er|ers)\b/,
    better: "one l",
  },
  { pattern: /\b(?:licence|defence|offence|pretence)s?\b/, better: "license, defense, offense" },
  { pattern: /\bcatalogu(?:e|es|ed|ing)\b/, better: "catalog" },
  { pattern: /\b(?:centre|metre|fibre|theatre)s?\b/, better: "…er" },
  {
    pattern:
      /\b(?:grey|artefacts?|whilst|amongst|fulfils?|programmes?|cheques?|ageing|judgements?|practis(?:e|ed|ing)|sceptic\w*|mould)\b/,
    better: "the American spelling",
  },
];

export const TERMS: readonly Term[] = [...RETIRED, ...BRITISH];

/**
 * A line as words: `isHeard`, `is-heard`, `is_heard` and `IS_HEARD` all read "is heard". Punctuation stays, so that a
 * phrase does not run over the end of a sentence. What the platform itself calls by a retired word is left out.
 */
export function plainWords(line: string): string {
  return line
    .replace(/\.adopt\(|allSettled/g, "(")
    .replace(/(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/g, " ")
    .replace(/(?<=[A-Za-z0-9])[_-]+(?=[A-Za-z0-9])/g, " ")
    .toLowerCase();
}
