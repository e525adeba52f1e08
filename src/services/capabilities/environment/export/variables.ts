import { Expression, type HclBlock, type HclValue } from '#services/hcl/hcl.ts';
import { listOf } from '#services/hcl/long-running.ts';
import type { WrittenVariable } from '#services/capabilities/variables/index.ts';

/** The attributes of the provider's resources that hold variables and secrets, as far as there are any. */
export function variableAttributes(
  label: string,
  variables: WrittenVariable[],
  withSecrets: boolean,
): Record<string, HclValue | undefined> {
  const described = (one: WrittenVariable, rest: Record<string, HclValue>) => ({
    key: one.key,
    ...rest,
    description: one.description || undefined,
  });
  const valueOf = (one: WrittenVariable): HclValue =>
    one.isSecret ? new Expression(`var.${secretName(label, one)}`) : (one.value ?? '');
  const plain = (one: WrittenVariable) => described(one, { value: valueOf(one) });
  const file = (one: WrittenVariable) => described(one, { mount_path: one.mountPath ?? '', value: valueOf(one) });
  const external = ({ external: at }: WrittenVariable) => ({
    reference: at!.name,
    secret_manager_access_id: at!.access,
  });
  const of = (isSecret: boolean, type: WrittenVariable['type']) =>
    variables.filter((one) => one.type === type && one.isSecret === isSecret && !one.external);
  const outside = variables.filter((one) => one.external !== null);
  const groups = (prefix: string, isSecret: boolean) => ({
    [`${prefix}s`]: listOf(of(isSecret, 'VALUE'), plain),
    [`${prefix}_files`]: listOf(of(isSecret, 'FILE'), file),
    [`${prefix}_aliases`]: listOf(of(isSecret, 'ALIAS'), (one) => described(one, { value: one.aliasOf ?? '' })),
    [`${prefix}_overrides`]: listOf(of(isSecret, 'OVERRIDE'), plain),
  });
  return {
    ...groups('environment_variable', false),
    ...(withSecrets ? groups('secret', true) : {}),
    external_secrets: listOf(
      outside.filter((one) => one.mountPath === null),
      (one) => described(one, external(one)),
    ),
    external_secret_files: listOf(
      outside.filter((one) => one.mountPath !== null),
      (one) => described(one, { mount_path: one.mountPath!, ...external(one) }),
    ),
  };
}

/** The variables of Terraform that secrets take their values from: who applies the export gives them. */
export const secretBlocks = (label: string, variables: WrittenVariable[]): HclBlock[] =>
  variables
    .filter((one) => one.isSecret && one.type !== 'ALIAS')
    .map((one) => ({
      type: 'variable',
      labels: [secretName(label, one)],
      attributes: { type: new Expression('string'), sensitive: true },
    }));

const secretName = (label: string, { key }: WrittenVariable): string => `${label}_${key}`;
