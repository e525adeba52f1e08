import { BLANK_IS_ABSENT } from '#platform/http/blank.ts';
import { Name, named, Nullable, OneOf, PlainListOf, Type, Uuid, type Static } from '#platform/http/schema.ts';
import { HelmPort, HelmPortRequest } from '#services/kinds/helm/ports.ts';
import { commonAnswer, commonInput } from '#services/service/common-fields.ts';
import { CommitId, GitRepository, GitRepositoryRequest } from '#services/sources/git.ts';

const Line = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: '^[^\\u0000-\\u001f\\u007f]*$' });

const ChartRequest = Type.Object({
  repository: Type.Optional(Nullable(Uuid)),
  chart_name: Type.Optional(Line(255)),
  chart_version: Type.Optional(Line(255)),
});

/** Source of a chart: exactly one of the fields. `git` is the form that answers have. */
const HelmSourceRequest = Type.Object(
  {
    git_repository: Type.Optional(GitRepositoryRequest),
    git: Type.Optional(Type.Object({ git_repository: GitRepositoryRequest })),
    helm_repository: Type.Optional(ChartRequest),
  },
  { exactlyOne: ['git_repository', 'git', 'helm_repository'] },
);
export type HelmSourceInput = Static<typeof HelmSourceRequest>;

const Pairs = Type.Optional(
  Type.Array(Type.Array(Type.String({ maxLength: 65_536 })), {
    maxItems: 500,
    description: 'Pairs of a key and a value.',
  }),
);

const ValuesRequest = Type.Object({
  set: Pairs,
  set_string: Pairs,
  set_json: Pairs,
  file: Type.Optional(
    Nullable(
      Type.Object({
        raw: Type.Optional(
          Nullable(
            Type.Object({
              values: Type.Optional(
                Type.Array(
                  Type.Object({
                    name: Type.Optional(Line(255)),
                    content: Type.Optional(Type.String({ maxLength: 262_144 })),
                  }),
                  { maxItems: 50, description: 'Files of values; a later one counts more.' },
                ),
              ),
            }),
          ),
        ),
        git: Type.Optional(
          Nullable(
            Type.Object({ git_repository: GitRepositoryRequest, paths: Type.Array(Line(1000), { maxItems: 50 }) }),
          ),
        ),
      }),
    ),
  ),
});
export type ValuesInput = Static<typeof ValuesRequest>;

const own = {
  ...commonInput,
  timeout_sec: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 86_400, description: 'Seconds; of a new service 600 without it.' }),
  ),
  auto_preview: Type.Optional(Nullable(Type.Boolean())),
  auto_deploy: Type.Optional(Type.Boolean()),
  arguments: Type.Optional(Type.Array(Line(10_000), { maxItems: 100, description: 'For the helm command.' })),
  allow_cluster_wide_resources: Type.Optional(Type.Boolean()),
  values_override: Type.Optional(ValuesRequest),
  ports: Type.Optional(Type.Array(HelmPortRequest, { maxItems: 100 })),
  blueprint_id: Type.Optional(Nullable(Uuid)),
};

export const HelmRequest = named('HelmRequest', Type.Object({ name: Name, source: HelmSourceRequest, ...own }));
export const HelmEditRequest = named(
  'HelmEditRequest',
  Type.Object({ name: Type.Optional(Name), source: Type.Optional(HelmSourceRequest), ...own }),
);
export type HelmInput = Static<typeof HelmEditRequest>;

const AnsweredPairs = Type.Array(Type.Array(Type.String()));

export const Helm = named(
  'Helm',
  Type.Object({
    ...commonAnswer,
    timeout_sec: Type.Integer({ minimum: 0, default: 600 }),
    auto_preview: Type.Boolean(),
    auto_deploy: Type.Boolean(),
    ports: Type.Array(HelmPort),
    source: Type.Union([
      Type.Object({ git: Type.Object({ git_repository: GitRepository }) }),
      Type.Object({
        repository: Type.Object({
          chart_name: Type.String(),
          chart_version: Type.String(),
          repository: Type.Object({ id: Uuid, name: Type.String(), url: Type.String() }),
        }),
      }),
    ]),
    arguments: Type.Array(Type.String()),
    allow_cluster_wide_resources: Type.Boolean({ default: false }),
    values_override: Type.Object({
      set: AnsweredPairs,
      set_string: AnsweredPairs,
      set_json: AnsweredPairs,
      file: Nullable(
        Type.Object({
          raw: Nullable(
            Type.Object({ values: Type.Array(Type.Object({ name: Type.String(), content: Type.String() })) }),
          ),
          git: Nullable(Type.Object({ git_repository: GitRepository, paths: Type.Array(Type.String()) })),
        }),
      ),
    }),
    blueprint_id: Nullable(Uuid),
  }),
);

export const HelmDeployRequest = named(
  'HelmDeployRequest',
  Type.Object({
    chart_version: Type.Optional({ ...Line(255), ...BLANK_IS_ABSENT }),
    git_commit_id: Type.Optional(CommitId),
    values_override_git_commit_id: Type.Optional(CommitId),
  }),
);
export const HelmDeployQuery = Type.Object({
  forceEvent: Type.Optional(
    OneOf(['DIFF'], { description: 'Only shows what a deployment would change, and deploys nothing.' }),
  ),
});

export const HelmDefaultValuesRequest = named('HelmDefaultValuesRequest', Type.Object({ source: HelmSourceRequest }));

export const KubernetesServiceList = PlainListOf(
  named(
    'KubernetesService',
    Type.Object({
      metadata: Type.Object({ name: Type.Optional(Type.String()) }),
      service_spec: Type.Object({
        type: Type.Optional(Type.String()),
        ports: Type.Optional(Type.Array(Type.Object({ name: Type.Optional(Type.String()), port: Type.Integer() }))),
        selectors: Type.Optional(Type.Array(Type.Object({ key: Type.String(), value: Type.String() }))),
      }),
    }),
  ),
);
