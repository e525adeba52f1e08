import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SERVICE_KINDS } from '#kernel/kinds.ts';

/** Files outside of the kinds that name a kind in code, with the reason. */
const EXCEPTIONS: Record<string, string> = {
  'platform/events/audit.ts': 'TERRAFORM is a part of a target there (`sub_target_type`), whatever its kind.',
  'services/api-document/request-examples.ts': 'Examples of bodies; CONTAINER is a mode of databases.',
  'services/capabilities/service/history/schema.ts': 'TERRAFORM is a type of lifecycle jobs there.',
  'runtimes/tools/terraform/programs.ts': 'TERRAFORM is a program there, beside OPEN_TOFU.',
  'runtimes/tools/inspect.ts': 'TERRAFORM is a program there, beside OPEN_TOFU.',
  'resources/blueprint/schema.ts': 'Types of the entries of a catalogue of the reference interface.',
  'resources/platform-configuration/schema.ts': 'Types of templates of the reference interface.',
  'resources/mcp-server/queries.ts': 'Only agentic workflows name servers, within their own configuration.',
  'resources/git-token/queries.ts': 'Only agentic workflows name git tokens within their own configuration.',
  'app/engine.ts': 'The composition root gives the hooks of Terraform the programs of the machine.',
};

const NAMED = new RegExp(`['"](?:${SERVICE_KINDS.join('|')})['"]|(?:^|[{,])\\s*(?:${SERVICE_KINDS.join('|')}):`, 'm');

/** Removes comments, which name kinds as examples. */
const withoutComments = (text: string): string => text.replaceAll(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*$/gm, '');

const findFiles = (): string[] =>
  readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      /\.ts$/.test(file) &&
      !/\.(test|fixture|contract)\.ts$|\/testing\.ts$/.test(file) &&
      !file.startsWith('services/kinds/') &&
      file !== 'kernel/service-kinds.ts' &&
      file !== 'platform/database/tables.ts',
  );

test('code outside of the kinds names no kind, but for the exceptions, each of which is needed', () => {
  const naming = findFiles().filter((file) => NAMED.test(withoutComments(readFileSync(`src/${file}`, 'utf8'))));
  expect(naming.sort()).toEqual(Object.keys(EXCEPTIONS).sort());
});

test.each(["kind === 'APPLICATION'", "kind in ('JOB')", 'const of = { HELM: 1 }', '["DATABASE"]'])(
  'a kind is found in %s',
  (code) => expect(NAMED.test(code)).toBe(true),
);
