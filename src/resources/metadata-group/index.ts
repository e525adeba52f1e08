export { metadataGroupRoutes } from '#resources/metadata-group/routes.ts';
export { ANNOTATIONS, LABELS, type MetadataKind } from '#resources/metadata-group/kinds.ts';
export { holdGroups, SERVICE_METADATA, type NamedGroup } from '#resources/metadata-group/queries.ts';
export { AnnotationsGroup, LabelsGroup } from '#resources/metadata-group/schema.ts';
