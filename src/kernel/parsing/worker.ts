import { parentPort } from 'node:worker_threads';
import { Texts } from '#kernel/parsing/parts.ts';
import { decodeText, problemOf } from '#kernel/parsing/problem.ts';
import { MAX_RESULT_BYTES, type Format, type Question, type Reply } from '#kernel/parsing/formats.ts';

/** Reads one file of a format. Throws Error with what is wrong with the file. */
type Parser = (text: string, options: never) => unknown;

/** Loaded with the first file of their format. */
const PARSERS: Record<Format, () => Promise<Parser>> = {
  yaml: async () => (await import('#kernel/parsing/yaml.ts')).parseYaml,
  'json-to-yaml': async () => (await import('#kernel/parsing/yaml.ts')).yamlOf,
  json: async () => (await import('#kernel/parsing/json.ts')).parseJson,
  hcl: async () => (await import('#kernel/parsing/hcl.ts')).parseHcl,
  toml: async () => (await import('#kernel/parsing/toml.ts')).parseToml,
  dockerfile: async () => (await import('#kernel/parsing/dockerfile.ts')).parseDockerfile,
  'dockerfile-reach': async () => (await import('#kernel/parsing/dockerfile-reach.ts')).findReach,
  'dockerfile-facts': async () => (await import('#kernel/parsing/dockerfile-facts.ts')).inspectDockerfile,
  'terraform-state': async () => (await import('#kernel/parsing/terraform-state.ts')).checkTerraformState,
  'terraform-content': async () => (await import('#kernel/parsing/terraform-answer.ts')).readStateTexts,
  'terraform-answer': async () => (await import('#kernel/parsing/terraform-answer.ts')).readTerraformAnswer,
  'json-shape': async () => (await import('#kernel/parsing/json.ts')).parseShape,
  'job-outputs': async () => (await import('#kernel/parsing/job-outputs.ts')).parseOutputs,
  'argo-cd': async () => (await import('#kernel/parsing/argo-cd.ts')).readArgoCdList,
  'chart-schema': async () => (await import('#kernel/parsing/chart-schema.ts')).findOutsideReferences,
  'chart-object': async () => (await import('#kernel/parsing/chart-object.ts')).inspectChartObject,
  manifest: async () => (await import('#kernel/parsing/manifests.ts')).compareManifests,
  'chart-index': async () => (await import('#kernel/parsing/chart-index.ts')).parseChartIndex,
  'source-archive': async () => (await import('#kernel/parsing/source-archive.ts')).convertArchive,
  globs: async () => (await import('#kernel/parsing/globs.ts')).matchGlobs,
  'passkey-registration': async () => (await import('#kernel/parsing/passkey.ts')).checkRegistration,
  'passkey-assertion': async () => (await import('#kernel/parsing/passkey.ts')).checkAssertion,
};

async function answer({ format, text, options }: Question): Promise<Reply> {
  try {
    const parse = await PARSERS[format]();
    const result = await parse(decodeText(text), options as never);
    if (result instanceof Texts) return { result: result.content };
    // Text passes between threads at once, and JSON.parse is faster than a structured clone of many small objects.
    const json = JSON.stringify(result ?? null);
    if (json.length > MAX_RESULT_BYTES)
      return { problem: `it holds more than ${MAX_RESULT_BYTES / 1024 / 1024} MiB once it is read`, kind: 'limit' };
    return { json };
  } catch (error) {
    return problemOf(error);
  }
}

/** A thread that reads files of users: it may be ended at any time, and nothing is lost. */
parentPort!.on('message', (question: Question) => {
  void answer(question).then((reply) => parentPort!.postMessage(reply));
});
