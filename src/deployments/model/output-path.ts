/** Where an execution writes what becomes variables: `/quarterdeck-output/output.json`, named by the prefix of built-in variables. */
export const outputPathOf = (builtInVariablePrefix: string): string =>
  `/${builtInVariablePrefix.replace(/_+$/, '').toLowerCase().replaceAll('_', '-')}-output/output.json`;
