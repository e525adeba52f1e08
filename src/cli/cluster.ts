import { stringify } from 'yaml';
import { rbacManifest } from '#app/kubernetes.ts';
import { print } from '#cli/print.ts';

/** Name of a namespace as Kubernetes takes it. */
const NAMESPACE = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Prints the objects that connect a Kubernetes cluster, as YAML. */
export function rbacCommand(namespace: string): void {
  if (!NAMESPACE.test(namespace))
    throw new Error(
      `--namespace ${namespace}: must be lower-case letters, digits and hyphens, at most 63, such as quarterdeck.`,
    );
  print(
    rbacManifest(namespace)
      .map((object) => stringify(object))
      .join('---\n'),
  );
}
