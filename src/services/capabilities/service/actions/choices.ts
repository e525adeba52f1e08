import type { Context } from '#platform/context.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { changeSpec } from '#services/service/service.ts';
import type { ServiceTarget } from '#services/service/target.ts';

/** Reads the options of a deploy call and stores those that are configuration in the service (docs/contributing/rules.md 15). */
export async function chooseForService(
  context: Context,
  kind: Kind,
  service: ServiceTarget,
  said: unknown,
): Promise<DeployChoice> {
  const choice = kind.deploy?.choose(service.spec, said ?? {}, '') ?? {};
  if (choice.spec) await changeSpec(context, kind, service, choice.spec);
  return choice;
}
