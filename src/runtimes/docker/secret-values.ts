import { readFileOf } from './container-files.ts';
import { filePathOf } from './files.ts';
import type { Instance } from './instances.ts';
import { LABEL } from './labels.ts';
import type { DockerNode } from './node.ts';

/** Returns the secret values of an instance's variables and files: the engine alone still has them. */
export async function secretValues(node: DockerNode, instance: Pick<Instance, 'id' | 'inspected'>): Promise<string[]> {
  const { Labels: labels, Env: env } = instance.inspected.Config;
  const names = JSON.parse(labels[LABEL.secrets] ?? '[]') as string[];
  const files = JSON.parse(labels[LABEL.secretFiles] ?? '[]') as number[];
  const container = node.engine.getContainer(instance.id);
  const contents = await Promise.all(files.map((index) => readFileOf(container, filePathOf(index))));
  return [
    ...names.flatMap((name) => env.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1) ?? []),
    ...contents.flatMap((content) => content?.toString('utf8') ?? []),
  ];
}
