import { invalidField } from '#kernel/errors.ts';

/** Options that make helm read files of its machine, start programs there, or talk to another cluster. */
const REFUSED = [
  '--values',
  '-f',
  '--set-file',
  '--post-renderer',
  '--post-renderer-args',
  '--kubeconfig',
  '--kube-apiserver',
  '--kube-as-group',
  '--kube-as-user',
  '--kube-ca-file',
  '--kube-context',
  '--kube-insecure-skip-tls-verify',
  '--kube-tls-server-name',
  '--kube-token',
  '--namespace',
  '-n',
  '--registry-config',
  '--repository-cache',
  '--repository-config',
  '--repo',
  '--username',
  '--password',
  '--ca-file',
  '--cert-file',
  '--key-file',
  '--keyring',
];

/** Returns the arguments for the helm command. Throws 400 for an option that only the service may set. */
export function checkArguments(given: string[]): string[] {
  given.forEach((argument, index) => {
    const refused = REFUSED.find((option) =>
      option.startsWith('--')
        ? argument === option || argument.startsWith(`${option}=`)
        : /^-[^-]/.test(argument) && argument.startsWith(option),
    );
    if (refused)
      throw invalidField(
        `arguments[${index}]`,
        `${refused} cannot be given: values belong in values_override, and cluster, namespace and repository are those of the service`,
      );
  });
  return given;
}
