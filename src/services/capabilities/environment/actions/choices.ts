import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import { findOfEnvironment } from '#services/capabilities/environment/actions/queries.ts';
import type { DeployChoice, Kind } from '#services/kind.ts';
import { changeSpec } from '#services/service/service.ts';

/** Entry of a list in `POST /environment/{id}/service/deploy`: an id, or an id with deploy options. */
export type ChosenService = string | ({ id?: string | null; application_id?: string } & Record<string, unknown>);

/** Reads the deploy options of the lists of a body, by service id. Options that are configuration are stored in the services. */
export async function chooseForEnvironment(
  context: Context,
  kinds: Kind[],
  place: { organizationId: string; id: string },
  body: Record<string, ChosenService[] | undefined>,
): Promise<Map<string, DeployChoice>> {
  const choices = new Map<string, DeployChoice>();
  for (const [group, entries] of Object.entries(body)) {
    const kind = kinds.find((candidate) => candidate.deploy?.group === group);
    for (const [index, entry] of (entries ?? []).entries()) {
      const path = `${group}[${index}]`;
      const id = typeof entry === 'string' ? entry : (entry.application_id ?? entry.id);
      if (!id) continue;
      const row = kind && (await findOfEnvironment(context.db, place, place.id, kind.kind, id));
      if (!row) throw invalidField(path, `${id} names no service of this kind in the environment`);
      const said = typeof entry === 'string' ? {} : entry;
      const choice = kind.deploy!.choose(row.spec, said, `${path}.`);
      if (choice.spec) await changeSpec(context, kind, row, choice.spec);
      choices.set(id, choice);
    }
  }
  return choices;
}
