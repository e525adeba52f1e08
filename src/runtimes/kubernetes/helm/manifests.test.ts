import { expect, test } from 'vitest';
import { newId } from '#kernel/ids.ts';
import { leastBlockedBy } from '#test/harness/blocking.ts';
import { differences } from './manifests.ts';

const map = (name: string, text: string) => `---\n# Source: web/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  labels: {a: b}\n  name: ${name}\ndata:\n  text: ${text}\n`; // prettier-ignore

const organization = newId();
const compared = (before: string, after: string) => differences(organization, before, after);

test('objects that are created, changed and removed are told, and what stays is not', async () => {
  const before = map('same', 'a') + map('changed', 'a') + map('removed', 'a');
  const after = map('changed', 'b') + map('same', 'a') + map('created', 'a');
  expect(await compared(before, after)).toEqual([
    '~ ConfigMap changed is changed',
    '    -   text: a',
    '    +   text: b',
    '+ ConfigMap created is created',
    '- ConfigMap removed is removed',
  ]);
  expect(await compared(before, before)).toEqual([]);
});

test('the content of a Secret is not told', async () => {
  const secret = (value: string) => `---\nkind: Secret\nmetadata: {name: "token"}\ndata: {a: ${value}}\n`;
  expect(await compared(secret('old'), secret('new'))).toEqual([
    '~ Secret token is changed',
    '    (its content is not shown)',
  ]);
});

test('a Secret within a list, with quoted keys or in JSON is none that shows its content', async () => {
  const forms = [
    (value: string) => `kind: List\nitems:\n- kind: Secret\n  metadata: {name: token}\n  stringData: {a: ${value}}\n`,
    (value: string) => `"kind": "Secret"\n"metadata": {"name": "token"}\n"data": {"a": "${value}"}\n`,
    (value: string) => `{"kind": "Secret", "metadata": {"name": "token"}, "data": {"a": "${value}"}}`,
    (value: string) => `kind: SecretList\nitems:\n- metadata: {name: token}\n  data: {a: ${value}}\n`,
    (value: string) => `? kind\n: !!str Secret\nmetadata: {name: &n token}\ndata: {a: ${value}}\n`,
  ];
  for (const form of forms)
    expect(await compared(form('old'), form('new')), form('')).toEqual([
      '~ Secret token is changed',
      '    (its content is not shown)',
    ]);
});

test('an object that becomes a Secret of the same name is told by name', async () => {
  const object = (kind: string) => `kind: ${kind}\nmetadata: {name: token}\ndata: {a: word}\n`;
  expect(await compared(object('ConfigMap'), object('Secret'))).toEqual([
    '+ Secret token is created',
    '- ConfigMap token is removed',
  ]);
});

test('objects of one name in two namespaces are two', async () => {
  const object = (namespace: string) => `---\nkind: ConfigMap\nmetadata: {name: web, namespace: ${namespace}}\n`;
  expect(await compared(object('a') + object('b'), object('b'))).toEqual(['- ConfigMap a/web is removed']);
});

test('objects of one kind and name in two API groups are two, and are told by them', async () => {
  const object = (apiVersion: string, text = 'a') => `---\napiVersion: ${apiVersion}\nkind: Ingress\nmetadata: {name: web}\nspec: {a: ${text}}\n`; // prettier-ignore
  const both = object('networking.k8s.io/v1') + object('traefik.io/v1alpha1');
  expect(await compared(both, both)).toEqual([]);
  expect(await compared(both, object('networking.k8s.io/v1') + object('traefik.io/v1alpha1', 'b'))).toEqual([
    '~ Ingress.traefik.io web is changed',
    '    -   a: a',
    '    +   a: b',
  ]);
  expect(await compared(object('extensions/v1beta1'), object('networking.k8s.io/v1'))).toEqual([
    '+ Ingress.networking.k8s.io web is created',
    '- Ingress.extensions web is removed',
  ]);
  // A new version of an API is no other object.
  const versions = await compared(object('networking.k8s.io/v1beta1'), object('networking.k8s.io/v1'));
  expect(versions[0]).toBe('~ Ingress web is changed');
});

test('the last of several equal keys holds, as helm reads them', async () => {
  const twice = (text: string) => `kind: ConfigMap\nmetadata: {name: web}\ndata: {a: b}\ndata: {a: ${text}}\n`;
  expect(await compared(twice('c'), `kind: ConfigMap\nmetadata: {name: web}\ndata: {a: c}\n`)).toEqual([]);
  const secret = (text: string) => `kind: ConfigMap\nkind: Secret\nmetadata: {name: web}\ndata: {a: ${text}}\n`;
  expect(await compared(secret('a'), secret('b'))).toEqual([
    '~ Secret web is changed',
    '    (its content is not shown)',
  ]);
});

test('a manifest before that is no YAML, or too large, is told as such', async () => {
  await expect(compared('kind: [', '')).rejects.toThrow(/^The manifest of the chart: the one before is not YAML: /);
  await expect(compared(`#${'a'.repeat(8 * 2 ** 20)}`, '')).rejects.toThrow('the one before is larger than 8192 KiB');
});

test('a comparison of large manifests leaves this thread to others', { timeout: 60_000 }, async () => {
  const large = (text: string) =>
    Array.from({ length: 10 }, (_, n) => map(`m${n}`, `a\n${Array.from({ length: 400 }, (_one, m) => `  k${m}: ${text}${m}`).join('\n')}`)).join(''); // prettier-ignore
  const [before, after] = [large('a'), large('b')];
  const compare = async () => expect(await compared(before, after)).toHaveLength(10 * 801);
  // Once: it takes seconds.
  const blocked = await leastBlockedBy(compare, 1);
  expect(blocked).toBeLessThan(1_000);
});

test('another way of writing the same object is no change', async () => {
  expect(await compared(map('same', 'a'), map('same', '"a"'))).toEqual([]);
});

test('a manifest that is no YAML is refused with its place', async () => {
  await expect(compared('', 'kind: [')).rejects.toThrow(/^The manifest of the chart: it is not YAML: /);
});
