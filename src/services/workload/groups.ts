import { invalidField } from '#kernel/errors.ts';
import type { Context } from '#platform/context.ts';
import type { ServiceSnapshot } from '#deployments/index.ts';
import { Reference, Type } from '#platform/http/schema.ts';
import {
  ANNOTATIONS,
  AnnotationsGroup,
  holdGroups,
  LABELS,
  LabelsGroup,
  type MetadataKind,
  type NamedGroup,
} from '#resources/metadata-group/index.ts';

const References = Type.Optional(
  Type.Array(Reference, { maxItems: 100, description: 'Where two hold the same key the later one counts.' }),
);

/** Fields of a body that names groups of labels and annotations. */
export const groupsRequest = { annotations_groups: References, labels_groups: References };

/** The same fields of an answer. */
export const groupsAnswer = {
  annotations_groups: Type.Array(AnnotationsGroup),
  labels_groups: Type.Array(LabelsGroup),
};

export interface GroupsInput {
  annotations_groups?: { id: string }[];
  labels_groups?: { id: string }[];
}

/** Ids of groups in a spec; absent in specs that were stored before groups existed. */
export interface GroupsSpec {
  annotations_groups?: string[];
  labels_groups?: string[];
}

const FIELDS = [
  ['annotations_groups', ANNOTATIONS],
  ['labels_groups', LABELS],
] as const;

/** Returns the ids to store; absent fields keep their value. Throws 400 for ids that are no groups of the organization. */
export async function toGroups(
  context: Context,
  place: { organizationId: string },
  input: GroupsInput,
  present: GroupsSpec | null,
): Promise<Required<GroupsSpec>> {
  const spec = { annotations_groups: present?.annotations_groups ?? [], labels_groups: present?.labels_groups ?? [] };
  for (const [field, kind] of FIELDS) {
    const given = input[field];
    if (!given) continue;
    const ids = given.map(({ id }) => id);
    const known = ids.length > 0 ? await holdGroups(context.db, place, kind.kind, ids) : [];
    const unknown = ids.findIndex((id) => !known.includes(id));
    if (unknown >= 0) throw invalidField(`${field}[${unknown}].id`, `names no ${kind.name} of this organization`);
    spec[field] = [...new Set(ids)];
  }
  return spec;
}

/** Returns the groups of a kind in a row, in the order in which its spec names them. */
const groupsOf = (groups: NamedGroup[] | null, ids: string[] | undefined, kind: MetadataKind): NamedGroup[] =>
  (ids ?? []).flatMap((id) => groups?.find((group) => group.id === id && group.kind === kind.kind) ?? []);

/** Makes the answer of a service's groups, with their present entries. */
export function toGroupsView(row: { metadata: NamedGroup[] | null }, spec: GroupsSpec) {
  return {
    annotations_groups: groupsOf(row.metadata, spec.annotations_groups, ANNOTATIONS).map(ANNOTATIONS.toView),
    labels_groups: groupsOf(row.metadata, spec.labels_groups, LABELS).map(LABELS.toView),
  };
}

/** Returns labels and annotations of a service's groups for the snapshot of a deployment. */
export function freezeGroups(row: {
  metadata: NamedGroup[] | null;
  spec: GroupsSpec;
}): Pick<ServiceSnapshot, 'labels' | 'annotations'> {
  const labels = groupsOf(row.metadata, row.spec.labels_groups, LABELS);
  const annotations = groupsOf(row.metadata, row.spec.annotations_groups, ANNOTATIONS);
  return {
    labels: Object.fromEntries(labels.flatMap(({ entries }) => entries.map(({ key, value }) => [key, value]))),
    annotations: annotations.map(({ scopes, entries }) => ({
      scopes,
      values: Object.fromEntries(entries.map(({ key, value }) => [key, value])),
    })),
  };
}
