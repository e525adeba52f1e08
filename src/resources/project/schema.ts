import { DateTime, ListOf, Name, named, PlainListOf, Reference, Type, Uuid } from '#platform/http/schema.ts';

export const ProjectRequest = named(
  'ProjectRequest',
  Type.Object({
    name: Name,
    description: Type.Optional(Type.String({ maxLength: 2000 })),
  }),
);

export const Project = named(
  'Project',
  Type.Object({
    id: Uuid,
    created_at: DateTime,
    updated_at: DateTime,
    name: Type.String(),
    description: Type.String(),
    associated_environments_count: Type.Integer(),
    organization: Reference,
  }),
);

export const ProjectList = ListOf(Project);

const ProjectStats = named(
  'ProjectStats',
  Type.Object({
    id: Uuid,
    service_total_number: Type.Integer(),
    environment_total_number: Type.Integer(),
  }),
);

export const ProjectStatsList = PlainListOf(ProjectStats);
