import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { listFiles } from './files.ts';

/** Sentence or word that breaks a rule. */
export interface Problem {
  line: number;
  message: string;
}

const MOST_WORDS = 20;

/** Words that begin a doc comment without naming a thing or saying what a function does. */
const HEADLESS = new Set(
  `what of one ones those these this that who whoever whose whom which somebody someone nobody anybody everybody it they them both such
   how where when why whether ours theirs nothing everything another others`.split(/\s+/),
);

/** Words without a definite meaning, in the first sentence of a doc comment. */
const VAGUE = /(?<!`)\b(somebody|nobody|anybody|whoever|of ours|of theirs)\b/i;

/** Phrases that messages to people do not have, with what they say instead. */
const PHRASES: [RegExp, string][] = [
  [/\b(is|are) wanted\b/, '"is required" or "must be …"'],
  [/\bcannot be had\b/, '"is not available"'],
  [/\bof ours\b/, 'the name of the thing'],
  [/\bthis takes an?\b/i, '"must be …" or "requires …"'],
];

/** Paths of files, as comments and pages cite them. */
const CITED = /(?<![\w/.@:-])((?:\.{0,2}\/)?(?:[\w.-]+\/)*[\w-][\w.-]*\.(?:md|ts|mjs|cjs|sql|sh|yaml|yml))(?![\w/*-])/g;

/** Finds what breaks the rules in one file. */
export function findProblems(root: string, file: string): Problem[] {
  const text = readFileSync(path.join(root, file), 'utf8');
  if (file.endsWith('.md')) return findCitations(root, file, text.replaceAll(/```[\s\S]*?```/g, blank), markdownPaths);
  if (file.endsWith('.ts'))
    return [...findDocProblems(text), ...findPhrases(file, text), ...findCitations(root, file, comments(file, text))];
  return findCitations(root, file, comments(file, text));
}

/** Replaces text by as many empty lines, so that line numbers stay. */
const blank = (text: string): string => text.replaceAll(/[^\n]/g, '');

const lineOf = (text: string, index: number): number => text.slice(0, index).split('\n').length;

function findDocProblems(text: string): Problem[] {
  return [...text.matchAll(/^[ \t]*\/\*\*(?!\/)([\s\S]*?)\*\//gm)].flatMap((match) => {
    const words = match[1]!
      .replaceAll(/^\s*\*? ?/gm, ' ')
      .replaceAll(/\s+/g, ' ')
      .trim();
    const line = lineOf(text, match.index);
    return problemsOfSentence(firstSentence(words)).map((message) => ({ line, message }));
  });
}

/** Returns the text up to the full stop, colon or semicolon that ends its first thought. */
function firstSentence(text: string): string {
  const end = /[.!?](?=\s+[A-Z`"(]|$)|[:;](?=\s)/.exec(
    text.replaceAll(/\b(e\.g|i\.e)\./g, (words) => words.replaceAll('.', ' ')),
  );
  return end ? text.slice(0, end.index) : text;
}

function problemsOfSentence(sentence: string): string[] {
  if (sentence.startsWith('@')) return [];
  const words = sentence.split(' ').filter((word) => /[\w]/.test(word));
  const first = (words[0] ?? '').replaceAll(/[^\w']/g, '').toLowerCase();
  const problems: string[] = [];
  if (HEADLESS.has(first))
    problems.push(`a comment begins with "${words[0]}": begin with a verb or a noun: "${sentence}"`);
  else if (VAGUE.test(sentence)) problems.push(`a comment says "${VAGUE.exec(sentence)![0]}": "${sentence}"`);
  if (words.length > MOST_WORDS)
    problems.push(`the first sentence of a comment has ${words.length} words, at most ${MOST_WORDS}: "${sentence}"`);
  return problems;
}

/** Texts of messages are string literals with a blank in them; tests may quote any. */
function findPhrases(file: string, text: string): Problem[] {
  if (!file.startsWith('src/') || file.endsWith('.test.ts')) return [];
  return [...text.matchAll(/(['`])(?:(?!\1)[^\\\n]|\\.)*\1/g)]
    .filter(([literal]) => literal.includes(' '))
    .flatMap((match) =>
      PHRASES.filter(([phrase]) => phrase.test(match[0])).map(([phrase, better]) => ({
        line: lineOf(text, match.index),
        message: `a message says "${phrase.exec(match[0])![0]}": say ${better}: ${match[0]}`,
      })),
    );
}

/** Returns the pattern of a comment line in the language of a file. */
const commentMark = (file: string): RegExp =>
  file.endsWith('.sql') ? /^\s*--/ : file.endsWith('.sh') ? /^\s*#/ : /^\s*(\/\/|\/?\*)/;

/** Blanks out everything but comments. */
function comments(file: string, text: string): string {
  const mark = commentMark(file);
  const lines = text.split('\n');
  return lines.map((line) => (mark.test(line) ? line : (/(?<=\s)\/\/ .*$/.exec(line)?.[0] ?? ''))).join('\n');
}

/** Reports whether a cited file exists: below the root, beside the citing file, or with that end of its path (`http/stream.ts`). */
const isThere = (root: string, file: string, cited: string): boolean =>
  [root, path.join(root, path.dirname(file))].some((folder) => existsSync(path.join(folder, cited))) ||
  filesOf(root).some((known) => known.endsWith(`/${cited.replace(/^[./]+/, '')}`));

const known = new Map<string, string[]>();

/** Returns every file of the project; asked once. */
function filesOf(root: string): string[] {
  if (!known.has(root)) known.set(root, listFiles(root));
  return known.get(root)!;
}

const anyPaths = (text: string) => [...text.matchAll(CITED)].map((match) => ({ cited: match[1]!, index: match.index }));

/** Returns the paths that a page cites. A name without a folder is left out: it may be a file of the users (`main.tf`, `values.yaml`). */
const markdownPaths = (text: string) =>
  anyPaths(text).filter(
    ({ cited }) => cited.includes('/') && /^(src|docs|test|bench|scripts|migrations|\.)/.test(cited),
  );

/** Returns the paths that a comment cites. A name without a folder counts only if it is a page; source files are found beside. */
const commentPaths = (text: string) =>
  anyPaths(text).filter(({ cited }) => cited.endsWith('.md') || cited.includes('/'));

function findCitations(root: string, file: string, text: string, find = commentPaths): Problem[] {
  return find(text)
    .filter(({ cited }) => !isThere(root, file, cited))
    .map(({ cited, index }) => ({ line: lineOf(text, index), message: `${cited} is cited and not there` }));
}
