/** One malformed set of arguments for the exec tool, and the field that its error has to name. */
export interface MalformedArguments {
  name: string;
  /** The arguments as raw JSON text, or bytes where they are no text. */
  raw: string | Uint8Array;
  /** The field, as a caller who sent it under "params" sees it. */
  field: string | RegExp;
}

const ok = '"argv":["touch","MARK"]';
const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

/** Arguments that no face may let through. MARK is replaced by the path of a file that must never come to be. */
export const MALFORMED: readonly MalformedArguments[] = [
  { name: "a string for a list", raw: '{"argv":"uname"}', field: "params.argv" },
  { name: "a number in a list of strings", raw: '{"argv":["touch",1]}', field: "params.argv[1]" },
  { name: "a list in a list of strings", raw: '{"argv":[["touch"]]}', field: "params.argv[0]" },
  { name: "null for a required list", raw: '{"argv":null}', field: "params.argv" },
  { name: "nothing for a required list", raw: "{}", field: "params.argv" },
  { name: "an empty list", raw: '{"argv":[]}', field: "params.argv" },
  { name: "an unknown field", raw: `{${ok},"shell":true}`, field: "params.shell" },
  { name: "an unknown field with an inherited name", raw: `{${ok},"constructor":{}}`, field: "params.constructor" },
  { name: "__proto__", raw: `{${ok},"__proto__":{"cwd":"/"}}`, field: "params.__proto__" },
  { name: "a key twice", raw: `{${ok},"cwd":"/tmp","cwd":"/"}`, field: "params.cwd" },
  { name: "a key twice, once escaped", raw: `{${ok},"cwd":"/tmp","c\\u0077d":"/"}`, field: "params.cwd" },
  { name: "a negative number", raw: `{${ok},"timeoutMs":-1}`, field: "params.timeoutMs" },
  { name: "a number out of range", raw: `{${ok},"timeoutMs":1e99}`, field: "params.timeoutMs" },
  { name: "a number over the tool's limit", raw: `{${ok},"timeoutMs":3600001}`, field: "params.timeoutMs" },
  { name: "a fraction for a whole number", raw: `{${ok},"timeoutMs":1.5}`, field: "params.timeoutMs" },
  { name: "words for a number", raw: `{${ok},"timeoutMs":"soon"}`, field: "params.timeoutMs" },
  { name: "a list for a map", raw: `{${ok},"env":[]}`, field: "params.env" },
  { name: "a number for a map's string", raw: `{${ok},"env":{"A":1}}`, field: /^params\.env/ },
  { name: "a map key with a bad name", raw: `{${ok},"env":{"BAD-NAME":"x"}}`, field: 'params.env["BAD-NAME"]' },
  { name: "a NUL in a string", raw: '{"argv":["touch","a\\u0000b"]}', field: "params.argv[1]" },
  { name: "more entries than the limit", raw: `{"argv":[${'"a",'.repeat(256)}"a"]}`, field: "params.argv" },
  { name: "a relative folder", raw: `{${ok},"cwd":"tmp"}`, field: "params.cwd" },
  { name: "10,000 levels", raw: `{"argv":${deep(10_000)}}`, field: /^params/ },
  { name: "33 levels", raw: `{"argv":${deep(33)}}`, field: /^params/ },
  {
    name: "2,000 keys",
    raw: `{${ok},"env":{${Array.from({ length: 2000 }, (_, n) => `"k${n}":""`).join(",")}}}`,
    field: /^params/,
  },
  { name: "NaN", raw: `{${ok},"timeoutMs":NaN}`, field: /params\.timeoutMs|^$/ },
  { name: "Infinity", raw: `{${ok},"timeoutMs":Infinity}`, field: /params\.timeoutMs|^$/ },
  { name: "half of a surrogate pair", raw: '{"argv":["touch","\\ud800"]}', field: "params.argv[1]" },
  { name: "a list for the arguments", raw: "[]", field: "params" },
  { name: "a string for the arguments", raw: '"x"', field: "params" },
];

/** Bytes that are no text, which only the faces that take bytes can be given. */
export const MALFORMED_BYTES: readonly MalformedArguments[] = [
  {
    name: "invalid UTF-8 in a string",
    raw: Buffer.from([0x7b, 0x22, 0x63, 0x77, 0x64, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
    field: /params\.cwd|^$/,
  },
  {
    name: "an overlong UTF-8 encoding",
    raw: Buffer.from([0x7b, 0x22, 0x63, 0x77, 0x64, 0x22, 0x3a, 0x22, 0xc0, 0xaf, 0x22, 0x7d]),
    field: /params\.cwd|^$/,
  },
  { name: "text that is cut off", raw: '{"argv":["touch"', field: /^params|^$/ },
  { name: "data after the end", raw: `{${ok}} {}`, field: /.*/ },
];

/** Whole bodies of POST /invoke that are wrong outside of the arguments, some in the shape of an MCP request. */
export const MALFORMED_BODIES: readonly MalformedArguments[] = [
  { name: "no tool", raw: `{"params":{${ok}}}`, field: "tool" },
  { name: "an unknown tool", raw: `{"tool":"exec2","params":{${ok}}}`, field: /.*/ },
  { name: "an unknown device", raw: `{"device":"nope","tool":"exec","params":{${ok}}}`, field: /.*/ },
  { name: "a number for the tool", raw: `{"tool":7,"params":{${ok}}}`, field: "tool" },
  { name: "a call id with bad characters", raw: `{"tool":"exec","callId":"../x","params":{${ok}}}`, field: "callId" },
  {
    name: "a purpose over its limit",
    raw: `{"tool":"exec","purpose":"${"x".repeat(1001)}","params":{${ok}}}`,
    field: "purpose",
  },
  { name: "a list for the body", raw: "[]", field: "" },
  { name: "an empty body", raw: "", field: "" },
  { name: "a byte order mark", raw: `\ufeff{"tool":"exec","params":{${ok}}}`, field: "" },
  {
    name: "an MCP request",
    raw: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"exec","arguments":{${ok}}}}`,
    field: "jsonrpc",
  },
  { name: "MCP's parameters", raw: `{"name":"exec","arguments":{${ok}}}`, field: "name" },
  { name: "MCP's parameters with a tool", raw: `{"tool":"exec","arguments":{${ok}}}`, field: "arguments" },
  { name: "MCP's _meta", raw: `{"tool":"exec","params":{${ok},"_meta":{"progressToken":1}}}`, field: "params._meta" },
  { name: "a model's tool_use block", raw: `{"type":"tool_use","name":"exec","input":{${ok}}}`, field: "type" },
];
