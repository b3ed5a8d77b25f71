import { describe, expect, test } from "vitest";
import { describePlugin } from "./announce.ts";
import { parseManifest } from "./manifest.ts";
import { problemText } from "./problem.ts";

/** A plugin.json whose tool begins on line 5, with these lines in it from line 8 on, and others after the tools. */
function text(more: readonly string[] = [], after: readonly string[] = []): string {
  return [
    "{",
    '  "name": "demo",',
    '  "env_allow": ["LANG"],',
    '  "tools": [',
    "    {",
    '      "name": "run",',
    '      "description": "Runs.",',
    ...more,
    '      "command": "true"',
    "    }",
    "  ]",
    ...after,
    "}",
  ].join("\n");
}

/** Everything that is wrong with a plugin.json, its schemas included. */
function problems(json: string): string[] {
  const parsed = parseManifest(Buffer.from(json));
  if (!parsed.ok) return parsed.problems.map(problemText);
  const described = describePlugin(parsed.manifest);
  return described.ok ? [] : described.problems.map(problemText);
}

function toolIn(json: string) {
  const parsed = parseManifest(Buffer.from(json));
  if (!parsed.ok) throw new Error(parsed.problems.map(problemText).join("\n"));
  const [tool] = parsed.manifest.tools;
  if (tool === undefined) throw new Error("no tool");
  return tool;
}

describe("a declaration", () => {
  test("has defaults that keep its program apart", () => {
    expect(toolIn(text())).toMatchObject({
      name: "run",
      command: { kind: "name", path: "true" },
      args: [],
      env: [],
      workDir: ".",
      timeoutSeconds: 30,
      permissionClass: "workspace",
      concurrencySafe: false,
      readOnly: false,
      destructive: false,
      inputSchema: { type: "object", properties: {}, additionalProperties: false },
      line: 5,
    });
    expect(toolIn(text(['      "read_only": true,']))).toMatchObject({ permissionClass: "read_only" });
  });

  test("says all that it can", () => {
    const more = [
      '"input_schema": { "type": "object", "properties": { "a": { "type": "string" } } },',
      `"args": ["-x", ""], "env": { "A": "<\${LANG}> $HOME $\${B}" }, "work_dir": "sub/", "timeout_seconds": 3600,`,
      '"permission_class": "host", "concurrency_safe": true, "destructive": true,',
    ];
    expect(toolIn(text(more))).toMatchObject({
      args: ["-x", ""],
      env: [["A", ["<", { variable: "LANG" }, "> $HOME ", "${", "B}"]]],
      workDir: "sub",
      timeoutSeconds: 3600,
      permissionClass: "host",
      concurrencySafe: true,
      destructive: true,
      lines: { command: 11, workDir: 9 },
      schemaLine: 8,
    });
  });

  test("may leave the place for MCP servers empty", () => {
    expect(problems(text([], [', "mcp_servers": {}']))).toEqual([]);
  });

  test.each([
    ["./a.py", { kind: "own", path: "a.py" }],
    ["bin/../b", { kind: "own", path: "b" }],
    ["/usr/bin/env", { kind: "absolute", path: "/usr/bin/env" }],
  ])("names its program as %s", (command, expected) => {
    const json = text().replace('"command": "true"', `"command": ${JSON.stringify(command)}`);
    expect(toolIn(json).command).toEqual(expected);
  });
});

/** A line in a tool, and what is wrong with line 8 then. */
const IN_A_TOOL: readonly (readonly [line: string, problem: RegExp])[] = [
  ['"comand": "x",', /a tool: unknown key "comand"; known are name, description/],
  ['"permission_class": "bash",', /permission_class must be one of read_only, workspace, host/],
  ['"permission_class": 1,', /permission_class must be a text/],
  ['"timeout_seconds": 0,', /timeout_seconds must be a whole number from 1 to 3600/],
  ['"timeout_seconds": 1.5,', /timeout_seconds must be a whole number/],
  ['"timeout_seconds": "5",', /timeout_seconds must be a whole number/],
  ['"timeout_seconds": 3601,', /timeout_seconds must be a whole number/],
  ['"read_only": "yes",', /read_only must be true or false/],
  ['"concurrency_safe": 1,', /concurrency_safe must be true or false/],
  ['"read_only": true, "destructive": true,', /a tool that only reads cannot be destructive/],
  ['"args": "-x",', /args must be a list/],
  ['"args": [1],', /args must be a text/],
  ['"args": ["a\\u0000b"],', /args must be a text without NUL/],
  ['"env": [],', /env must be an object/],
  ['"env": { "A B": "x" },', /env: "A B" is no name of a variable/],
  ['"env": { "REEVE_TOKEN": "x" },', /env: "REEVE_TOKEN" is no name of a variable/],
  ['"env": { "A": 1 },', /env\.A must be a text/],
  [`"env": { "A": "\${HOME}" },`, /env\.A: "\$\{HOME\}" is not in the plugin's env_allow/],
  [`"env": { "A": "\${LANG" },`, /env\.A: "\$\{" has no end/],
  [`"env": { "A": "\${A-b}" },`, /env\.A: "A-b" in "\$\{…\}" is no name/],
  ['"work_dir": "../x",', /work_dir must lie in the plugin's folder/],
  ['"work_dir": "a/../../x",', /work_dir must lie in the plugin's folder/],
  ['"input_schema": [],', /input_schema must be a JSON Schema/],
  ['"input_schema": { "type": "string" },', /not of an object/],
  ['"input_schema": { "type": "object", "$ref": "http://a/b" },', /refers to what is not in its own/],
  ['"input_schema": { "type": "object", "unknown": 1 },', /keyword unknown, which is not taken/],
  ['"input_schema": { "type": "object", "properties": { "a": { "pattern": "(" } } },', /./],
  ['"name": "again",', /name: this key occurs twice/],
  ["'single': 1,", /expected a key in double quotes/],
];

test.each(IN_A_TOOL)("a tool with %s is refused, with the line", (line, problem) => {
  const found = problems(text([`      ${line}`]));
  expect(found).toHaveLength(1);
  expect(found[0]).toMatch(/^plugin\.json, line 8: /);
  expect(found[0]).toMatch(problem);
});

/** What is changed in a plugin.json, and what is wrong with it then. */
const ELSEWHERE: readonly (readonly [from: string | RegExp, to: string, problem: string])[] = [
  ['"name": "demo"', '"name": "Demo"', "line 2: name must be of lower case letters"],
  ['"name": "demo",', "", "line 1: name must be of lower case letters"],
  ['["LANG"]', '["REEVE_TOKEN"]', 'line 3: env_allow: "REEVE_TOKEN" is no name of a variable'],
  ['["LANG"]', '"LANG"', "line 3: env_allow must be a list"],
  ['"name": "run"', '"name": "Run It"', "line 6: a tool's name must be of a-z"],
  ['"name": "run",', "", "line 5: a tool's name must be of a-z"],
  ['"Runs."', '" "', "line 7: description must say what the tool does"],
  ['"command": "true"', '"command": ""', "line 8: command must be a name on the PATH"],
  ['"command": "true"', '"command": "../x"', "line 8: command must be a name on the PATH"],
  ['"command": "true"', '"command": "."', "line 8: command must be a name on the PATH"],
  ['"command": "true"', '"timeout_seconds": 1', "line 5: command must be a name on the PATH"],
  ['"command": "true"', '"command": "true",', "line 9: tools[0].command: expected a key in double quotes"],
  ['"command": "true"', '"command" "true"', 'line 8: tools[0].command: expected ":" after the key'],
  [/\{.*\}/s, "[]", "line 1: a plugin must be an object"],
  [/\[\n.*\]/s, "[]", "line 4: tools must hold at least one tool"],
  [/\[\n.*\]/s, "[7]", "line 4: a tool must be an object"],
  [/\n\}$/, ', "servers": [] }', 'line 10: a plugin: unknown key "servers"'],
  [
    /\}\n {2}\]/,
    '},\n{ "name": "run", "description": "x", "command": "y" }]',
    'line 10: the tool "run" is declared twice',
  ],
  [/\n\}$/, "", "line 10: tools: expected"],
];

test.each(ELSEWHERE)("%s → %s is refused, with the line", (from, to, problem) => {
  expect(problems(text().replace(from, () => to))[0]).toContain(`plugin.json, ${problem}`);
});

test("everything that is wrong is said at once", () => {
  const lines = problems(text(['"args": 1,', '"env": 2,', '"read_only": 3,'])).map((one) => one.split(":")[0]);
  expect(new Set(lines)).toEqual(new Set([8, 9, 10].map((line) => `plugin.json, line ${line}`)));
  expect(lines).toHaveLength(3);
});

/** A plugin.json with these MCP servers and no tool. */
const withServers = (servers: unknown) =>
  JSON.stringify({ name: "demo", env_allow: ["TOKEN"], mcp_servers: servers }, undefined, 1);

describe("an MCP server", () => {
  test("is a program, kept apart as a tool is, or an address", () => {
    const parsed = parseManifest(
      Buffer.from(
        withServers({
          own: { command: "./server.py", args: ["-x"], read_only: ["get"], network: true },
          web: { url: "http://127.0.0.1:1/mcp", headers: { Authorization: `Bearer \${TOKEN}` }, timeout_seconds: 5 },
        }),
      ),
    );
    if (!parsed.ok) throw new Error(parsed.problems.map(problemText).join("\n"));
    const common = { timeoutSeconds: 30, concurrencySafe: false, readOnly: [] };
    expect(parsed.manifest.servers).toMatchObject([
      {
        ...common,
        name: "own",
        readOnly: ["get"],
        place: {
          kind: "program",
          command: { kind: "own", path: "server.py" },
          args: ["-x"],
          permissionClass: "workspace",
          network: true,
        },
      },
      {
        ...common,
        name: "web",
        timeoutSeconds: 5,
        place: {
          kind: "address",
          url: "http://127.0.0.1:1/mcp",
          headers: [["Authorization", ["Bearer ", { variable: "TOKEN" }]]],
        },
      },
    ]);
  });

  test.each<readonly [server: object, problem: RegExp]>([
    [{ command: "../x" }, /command must be a name on the PATH/],
    [{ url: "ftp://x" }, /url must be an http or https address/],
    [{ url: "http://name:secret@x" }, /without a name or a password/],
    [{ url: "http://x", command: "y" }, /command: a server has a command or a url/],
    [{ command: "y", headers: {} }, /headers: a server has a command or a url/],
    [{ url: "http://x", headers: { Host: "y" } }, /"Host" is no name of a header that a plugin may set/],
    [{ url: "http://x", headers: { "A B": "y" } }, /"A B" is no name of a header/],
    [{ url: "http://x", headers: { A: `\${HOME}` } }, /headers\.A: "\$\{HOME\}" is not in the plugin's env_allow/],
    [{ command: "y", env: { REEVE_TOKEN: "x" } }, /no name of a variable that a plugin may set/],
    [{ command: "y", tools: [] }, /an MCP server: unknown key "tools"/],
  ])("%j is refused", (server, problem) => {
    expect(problems(withServers({ a: server }))[0]).toMatch(problem);
  });

  test("has a name of its own form, and few beside it", () => {
    expect(problems(withServers({ A: { command: "y" } }))[0]).toContain('"A" is no name of a server');
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`s${at}`, { command: "y" }]));
    expect(problems(withServers(many))[0]).toContain("at most 8 servers");
    expect(problems(withServers({}))[0]).toContain("at least one tool, or mcp_servers a server");
  });
});
