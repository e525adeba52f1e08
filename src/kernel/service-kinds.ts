/** Group of advanced settings that kinds have together. */
export type SettingGroup =
  | 'web'
  | 'pods'
  | 'replicas'
  | 'builds'
  | 'buildCache'
  | 'buildStorage'
  | 'lifecycleCommands'
  | 'requestBuffering'
  | 'runs'
  | 'serviceAccountToken';

/** Facts about a kind of service that every layer may know: names, and the lists of the interface that it stands in. */
export interface KindFacts {
  /** Name of the list that holds it in answers which group services by kind. */
  group: string;
  /** Events name it as their target; those about other kinds name their environment. */
  audited?: true;
  /** Variables and secrets stand on it. */
  variables?: true;
  /** Services have a host name within their cluster. */
  serving?: true;
  /** Beginning of that host name; without it the name begins with the type in the configuration. */
  hostPrefix?: string;
  /** Groups of advanced settings that it has. */
  settings?: readonly SettingGroup[];
  /** True if its removal takes the right `workload.delete`. */
  guarded?: true;
  /** Instances run until they are stopped; those of other kinds run to an end. */
  longRunning?: true;
  /** Services are run elsewhere and only read here. */
  observed?: true;
  /** True if its services are CRON or LIFECYCLE ones, by their schedule. */
  scheduled?: true;
  /** Variables, lists of the services of a cluster and selections of services of an environment name it. */
  linked?: true;
  /** Further fields of the kind's list in the first form of histories; absent if it has no list there. */
  historyV1?: readonly ('commit' | 'image' | 'schedule' | 'repository')[];
  /** True if the first form of a deployment's log names it as the scope of a line. */
  logScope?: true;
  /** Alert rules may be about it. */
  alerts?: true;
  /** Lists of what carries a group of labels or annotations name it. */
  metadata?: true;
  /** Lists of what uses a git token, a container registry or a Helm repository name it. */
  usesGitTokens?: true;
  usesRegistries?: true;
  usesHelmRepositories?: true;
  /**
   * Services run containers and nothing with rights of the control plane or a cloud: an environment that runs the code of a fork may have them.
   */
  forks?: true;
  /** Parts of a deployment that the interface names (`sub_action`). */
  subActions?: { DEPLOY: string; REMOVE: string };
}

/**
 * Every kind of service: the one place where a kind is registered by name, besides its descriptor in services/kinds. Lists and
 * schemas of all layers are made from it.
 */
export const KIND_FACTS = {
  APPLICATION: {
    group: 'applications',
    longRunning: true,
    audited: true,
    variables: true,
    serving: true,
    hostPrefix: 'app',
    settings: ['web', 'pods', 'replicas', 'builds', 'buildCache', 'lifecycleCommands', 'serviceAccountToken'],
    guarded: true,
    linked: true,
    historyV1: ['commit'],
    logScope: true,
    alerts: true,
    metadata: true,
    usesGitTokens: true,
    forks: true,
  },
  DATABASE: {
    group: 'databases',
    longRunning: true,
    audited: true,
    serving: true,
    guarded: true,
    linked: true,
    historyV1: [],
    logScope: true,
    metadata: true,
    forks: true,
  },
  CONTAINER: {
    group: 'containers',
    longRunning: true,
    audited: true,
    variables: true,
    serving: true,
    hostPrefix: 'app',
    settings: ['web', 'pods', 'replicas', 'requestBuffering', 'serviceAccountToken'],
    guarded: true,
    linked: true,
    historyV1: ['image'],
    alerts: true,
    metadata: true,
    usesRegistries: true,
    forks: true,
  },
  JOB: {
    group: 'jobs',
    audited: true,
    variables: true,
    hostPrefix: 'job',
    settings: ['pods', 'builds', 'buildCache', 'runs', 'serviceAccountToken'],
    scheduled: true,
    linked: true,
    historyV1: ['commit', 'image', 'schedule'],
    alerts: true,
    metadata: true,
    usesGitTokens: true,
    usesRegistries: true,
    forks: true,
  },
  HELM: {
    group: 'helms',
    audited: true,
    variables: true,
    serving: true,
    hostPrefix: 'helm',
    settings: ['web', 'requestBuffering'],
    linked: true,
    historyV1: ['commit', 'repository'],
    alerts: true,
    usesGitTokens: true,
    usesHelmRepositories: true,
  },
  TERRAFORM: {
    group: 'terraforms',
    audited: true,
    variables: true,
    hostPrefix: 'terraform',
    settings: ['pods', 'builds', 'buildStorage'],
    linked: true,
    alerts: true,
    usesGitTokens: true,
    subActions: { DEPLOY: 'TERRAFORM_PLAN_AND_APPLY', REMOVE: 'TERRAFORM_DESTROY' },
  },
  ARGOCD_APP: { group: 'argocd_apps', observed: true },
  AGENTIC_WORKFLOW: { group: 'agentic_workflows', audited: true, variables: true },
} as const satisfies Record<string, KindFacts>;
