import type { TSchema } from 'typebox';
import type { SubTargetType } from '#platform/events/audit.ts';
import type { GroupColumns, GroupKind, GroupRow } from '#resources/metadata-group/queries.ts';
import { checkAnnotations, checkLabels, type Entry } from '#resources/metadata-group/rules.ts';
import * as schema from '#resources/metadata-group/schema.ts';

/** Group as its row has it, or as `SERVICE_METADATA` answers it. */
type Shown = Omit<GroupRow, 'organization_id' | 'created_at' | 'updated_at'> & {
  created_at: Date | string;
  updated_at: Date | string;
};

/** Differences between labels and annotations. */
export interface MetadataKind {
  kind: GroupKind;
  /** Segment of its paths, name of its id in them, and its names in operation ids and for people. */
  segment: string;
  param: string;
  title: string;
  /** Operation id of the GET of one group. */
  getId: string;
  name: string;
  sub: SubTargetType;
  request: typeof schema.LabelsGroupRequest | typeof schema.AnnotationsGroupRequest;
  answer: TSchema;
  list: TSchema;
  /** Returns the columns of a body; 400 for entries that Kubernetes would not accept. */
  toColumns(input: GroupInput): GroupColumns;
  toView(row: Shown): Record<string, unknown>;
}

/** A body of either kind: its schema says which fields it has. */
export interface GroupInput {
  name: string;
  labels?: Entry[];
  annotations?: Entry[];
  scopes?: string[];
}

const base = (row: Shown) => ({
  id: row.id,
  created_at: new Date(row.created_at).toISOString(),
  updated_at: new Date(row.updated_at).toISOString(),
  name: row.name,
});

export const LABELS: MetadataKind = {
  kind: 'LABELS',
  segment: 'labelsGroups',
  param: 'labelsGroupId',
  title: 'LabelsGroup',
  // The reference spells it so.
  getId: 'getOrganizationLabelssGroup',
  name: 'labels group',
  sub: 'LABELS_GROUP',
  request: schema.LabelsGroupRequest,
  answer: schema.LabelsGroup,
  list: schema.LabelsGroupList,
  toColumns: ({ name, labels = [] }) => {
    checkLabels('labels', labels);
    const entries = labels.map(({ key, value, propagate_to_cloud_provider }) => ({
      key,
      value,
      propagate_to_cloud_provider,
    }));
    return { name: name.trim(), entries, scopes: [] };
  },
  toView: (row) => ({ ...base(row), labels: row.entries }),
};

export const ANNOTATIONS: MetadataKind = {
  kind: 'ANNOTATIONS',
  segment: 'annotationsGroups',
  param: 'annotationsGroupId',
  title: 'AnnotationsGroup',
  getId: 'getOrganizationAnnotationsGroup',
  name: 'annotations group',
  sub: 'ANNOTATIONS_GROUP',
  request: schema.AnnotationsGroupRequest,
  answer: schema.AnnotationsGroup,
  list: schema.AnnotationsGroupList,
  toColumns: ({ name, annotations = [], scopes = [] }) => {
    checkAnnotations('annotations', annotations);
    const entries = annotations.map(({ key, value }) => ({ key, value }));
    return { name: name.trim(), entries, scopes: [...new Set(scopes)] };
  },
  toView: (row) => ({ ...base(row), annotations: row.entries, scopes: row.scopes }),
};
