import { expect, test } from 'vitest';
import { differences } from './manifests.ts';

const map = (name: string, text: string) => `---\n# Source: web/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {a: b}\n  name: ${name}\ndata:\n  text: ${text}\n`; // prettier-ignore

test('objects that are created, changed and removed are told, and what stays is not', () => {
  const before = map('same', 'a') + map('changed', 'a') + map('removed', 'a');
  const after = map('changed', 'b') + map('same', 'a') + map('created', 'a');
  expect(differences(before, after)).toEqual([
    '~ ConfigMap changed is changed',
    '    -   text: a',
    '    +   text: b',
    '+ ConfigMap created is created',
    '- ConfigMap removed is removed',
  ]);
  expect(differences(before, before)).toEqual([]);
});

test('the content of a Secret is not told', () => {
  const secret = (value: string) => `---\nkind: Secret\nmetadata: {name: "token"}\ndata: {a: ${value}}\n`;
  expect(differences(secret('old'), secret('new'))).toEqual([
    '~ Secret token is changed',
    '    (its content is not shown)',
  ]);
});
