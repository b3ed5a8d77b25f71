import { namesBelow, namesOf } from "./names.ts";

/** Files and folders that begin with a dot and hold a project's own settings, which anyone who gets the project sees. */
const SHOWN = new Set(
  `.gitignore .gitattributes .gitmodules .gitkeep .keep .mailmap .github .gitlab .gitlab-ci.yml .circleci .travis.yml
  .editorconfig .dockerignore .npmignore .nvmrc .node-version .python-version .ruby-version .tool-versions
  .prettierrc .prettierrc.json .prettierrc.yaml .prettierrc.yml .prettierignore .eslintrc .eslintrc.json .eslintrc.js
  .eslintrc.cjs .eslintrc.yml .eslintignore .oxlintrc.json .stylelintrc .stylelintrc.json .babelrc .swcrc .browserslistrc
  .clang-format .clang-tidy .flake8 .pylintrc .rubocop.yml .rspec .yamllint .markdownlint.json .changeset .well-known
  .env.example .env.sample .env.template`.split(/\s+/),
);

/**
 * True for a path with a name that begins with a dot, below the folder of `roots` that it lies in, but for those that
 * hold a project's own settings. Programs keep their settings, histories and credentials under such names, more of them
 * than any list has. True for a path that is not absolute.
 */
export function isHidden(path: string, roots: readonly string[]): boolean {
  const names = namesOf(path);
  if (names === undefined) return true;
  return (namesBelow(names, roots) ?? names).some(isHiddenName);
}

/** True for a name that begins with a dot, but for those that hold a project's own settings. */
export function isHiddenName(name: string): boolean {
  return name.startsWith(".") && !SHOWN.has(name.toLowerCase());
}
