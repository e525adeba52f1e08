import { createHash } from 'node:crypto';
import { parseAllDocuments, stringify, type Document } from 'yaml';
import { LIMITS, type ManifestOptions } from '#kernel/parsing/formats.ts';
import { changesBetween } from '#kernel/parsing/line-changes.ts';
import { Texts, toParts } from '#kernel/parsing/parts.ts';

/** Depth of lists within lists. */
const MOST_DEPTH = 5;
const MOST_ALIASES = 100;
/** Lines of an object beyond which only the fact of a change is told: a comparison takes time by their product. */
const MOST_COMPARED = 1_000;

/** Object of a manifest for Kubernetes. The content of a Secret is a digest, which tells only whether it has changed. */
type ManifestObject = { group: string; kind: string; name: string } & ({ text: string } | { digest: string });

/** Compares a manifest with the one before by their objects, and returns lines for people. Contents of Secrets are not told. */
export function compareManifests(text: string, { before }: ManifestOptions): Texts<string[]> {
  if (Buffer.byteLength(before) > LIMITS.manifest.bytes)
    throw new Error(`the one before is larger than ${LIMITS.manifest.bytes / 1024} KiB`);
  const [old, fresh] = [objectsOf(before, 'the one before is'), objectsOf(text, 'it is')];
  const titleOf = titlesOf([...old, ...fresh]);
  const lines: string[] = [];
  for (const [key, object] of fresh) {
    const present = old.get(key);
    if (present === undefined) lines.push(`+ ${titleOf(object)} is created`);
    else if (contentOf(present) !== contentOf(object))
      lines.push(`~ ${titleOf(object)} is changed`, ...changesOf(present, object).map((line) => `    ${line}`));
  }
  for (const [key, object] of old) if (!fresh.has(key)) lines.push(`- ${titleOf(object)} is removed`);
  return new Texts(toParts(lines));
}

const contentOf = (object: ManifestObject): string => ('text' in object ? object.text : object.digest);

function changesOf(before: ManifestObject, after: ManifestObject): string[] {
  if (!('text' in before) || !('text' in after)) return ['(its content is not shown)'];
  const [old, fresh] = [before.text.split('\n'), after.text.split('\n')];
  if (Math.max(old.length, fresh.length) > MOST_COMPARED) return ['(it is too long to be compared)'];
  return changesBetween(old, fresh);
}

/** Returns how objects are called: by kind and name, and by their API group where several are called so. */
function titlesOf(objects: [key: string, object: ManifestObject][]): (object: ManifestObject) => string {
  const groups = Map.groupBy(
    objects.map(([, object]) => object),
    ({ kind, name }) => `${kind} ${name}`,
  );
  const isAmbiguous = ({ kind, name, group }: ManifestObject) =>
    groups.get(`${kind} ${name}`)!.some((other) => other.group !== group);
  return (object) => `${object.kind}${isAmbiguous(object) ? `.${object.group || 'v1'}` : ''} ${object.name}`;
}

/** Returns the objects of a manifest, those of lists one by one, by API group, kind and name. */
function objectsOf(text: string, subject: string): Map<string, ManifestObject> {
  // As for helm, the last of several equal keys holds.
  const documents = parseAllDocuments(text, { version: '1.1', merge: true, uniqueKeys: false, logLevel: 'error' });
  // An empty text has no documents, but a description of what stands around them.
  const values = Array.isArray(documents) ? documents.map((document) => valueOf(document, subject)) : [];
  const objects = values.flatMap((value) => objectsIn(value));
  return new Map(objects.map((object) => [`${object.group}/${object.kind} ${object.name}`, object]));
}

function valueOf(document: Document, subject: string): unknown {
  const [error] = document.errors;
  if (error) throw new Error(`${subject} not YAML: ${error.message}`);
  return document.toJS({ maxAliasCount: MOST_ALIASES });
}

/** Kind and API version of the items of a list, which may leave theirs out. */
interface ItemType {
  kind: string | undefined;
  apiVersion: unknown;
}

function objectsIn(value: unknown, ofList?: ItemType, depth = 0): ManifestObject[] {
  if (typeof value !== 'object' || value === null) return [];
  const { kind = ofList?.kind, apiVersion = ofList?.apiVersion, items, metadata } = value as Record<string, unknown>;
  if (typeof kind !== 'string') return [];
  if (kind.endsWith('List') && Array.isArray(items)) {
    if (depth === MOST_DEPTH) throw new Error(`it has lists within lists, more than ${MOST_DEPTH} deep`);
    const ofItems = kind === 'List' ? undefined : { kind: kind.slice(0, -'List'.length), apiVersion };
    return items.flatMap((item: unknown) => objectsIn(item, ofItems, depth + 1));
  }
  const name = nameIn(metadata);
  const group = groupIn(apiVersion);
  const text = stringify(value, { lineWidth: 0 }).trimEnd();
  return [kind === 'Secret' ? { group, kind, name, digest: digestOf(text) } : { group, kind, name, text }];
}

/** Returns the API group of a version such as `apps/v1`; empty for those of Kubernetes' core. */
const groupIn = (apiVersion: unknown): string =>
  typeof apiVersion === 'string' && apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';

/** Returns the name of an object, with its namespace if it has one of its own. */
function nameIn(metadata: unknown): string {
  const { name, namespace } = Object(metadata) as { name?: unknown; namespace?: unknown };
  const isText = typeof name === 'string' || typeof name === 'number';
  return `${typeof namespace === 'string' ? `${namespace}/` : ''}${isText ? String(name) : '(without a name)'}`;
}

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
