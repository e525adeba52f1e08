/**
 * Returns the path to which an execution writes output that becomes variables: `/quarterdeck-output/output.json`, named by the prefix of
 * built-in variables.
 */
export const outputPathOf = (builtInVariablePrefix: string): string =>
  `/${builtInVariablePrefix.replace(/_+$/, '').toLowerCase().replaceAll('_', '-')}-output/output.json`;
