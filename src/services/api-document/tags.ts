import { READ_KINDS, KINDS } from '#services/mount.ts';

/** Descriptions of the tags that belong to no kind of service. */
const TAGS: Record<string, string> = {
  'Account Info': 'Your own account: names, picture and the address for messages.',
  'Sign In': 'Signing in without an identity provider: passwords, one-time links and sessions.',
  'User Sign Up': 'What you said about yourself at sign-up.',
  'Organization Main Calls':
    'Organizations, with what belongs to a whole organization: git tokens, onboarding, lists across projects.',
  'Referral & Rewards': 'Referral programme of the reference interface, which this installation does not have.',
  IPs: 'Addresses from which this installation calls other systems.',
  Billing: 'Plan and billing information. This installation charges nothing.',
  'Cloud Provider': 'Regions, features, machines and databases of cloud providers, from tables of this release.',
  'Cloud Provider Credentials': 'Accounts at cloud providers, which clusters name. Their secrets are never answered.',
  Members: 'Members of an organization, their roles, and invitations.',
  'Organization Enterprise Connection':
    'Mapping of groups of an identity provider to roles, which this release does not apply.',
  'Organization Custom Role': 'Roles with permissions of their own on clusters and projects.',
  'Organization Api Token': 'API tokens with a scope or a role. A token is shown once, when it is created.',
  'Organization Policy Api Token': 'API tokens that a policy in a part of Rego narrows further.',
  'Github App': 'Connection to a GitHub App, which this installation does not have: it uses git tokens.',
  'MCP Servers': 'Servers of the Model Context Protocol that agentic workflows can use.',
  'Container Registries': 'Registries that images are pulled from, with their credentials.',
  'Organization Account Git Repositories': 'Repositories and branches that the git tokens of an organization show.',
  'Git Webhooks': 'Calls by which git providers tell of pushes.',
  'Git repositories': 'Repositories and branches that the git tokens of your organizations show.',
  'Helm Repositories': 'Repositories that charts are read from, with their credentials.',
  'Organization Labels Group': 'Groups of labels that services and clusters carry.',
  'Organization Annotations Group': 'Groups of annotations that services and clusters carry.',
  Projects: 'The projects of an organization.',
  'Project Main Calls': 'One project: read, edit and delete it.',
  Environments: 'The environments of a project, with their statuses.',
  'Environment Main Calls': 'One environment: its configuration, its status and its queue.',
  'Deployment Stage Main Calls': 'Stages of an environment, which are deployed one after the other.',
  'Project Deployment Rule': 'Rules that decide when new environments of a project run.',
  'Environment Deployment Rule': 'When an environment runs by itself.',
  'Organization Event': 'Audit events: who changed what, and when.',
  'Organization Webhook': 'Calls to your own systems when deployments start and end.',
  'Alert Receivers': 'Where messages of alerts go, with a test message.',
  'Alert Rules': 'Rules that watch services and tell receivers when something breaks and when it is over.',
  Clusters: 'Clusters that environments are deployed on: record, configuration, state, logs and metrics.',
  'Organization Cluster Lock': 'Clusters on which nothing is deployed for now.',
  'Cluster Operator': 'Operator of the reference interface, which this installation does not need.',
  'Platform Configuration': 'Templates of what is installed in a cluster, of which this release has none.',
  ArgoCD: 'Apps that are read from the Argo CD of a cluster.',
  'Secret Manager Access': 'Secrets of external managers, which variables can name.',
  'Blueprint Main Calls': 'Services from a catalogue, which is empty in this release.',
  'Blueprint Catalog': 'Readme and variables of the entries of the catalogue.',
  'Agentic Workflows': 'Workflows that an agent carries out in an environment of its own.',
  Backups: 'Backups of databases, and restores from them.',
  'Database Application': 'Links of applications with databases.',
  'Terraform Resources': 'What a Terraform service manages, and what its next run would change.',
  'Project Environment Variable': 'Variables that every environment of a project sees.',
  'Project Secret': 'Secrets that every environment of a project sees. Their values are never answered.',
  'Environment Variable': 'Variables that every service of an environment sees.',
  'Environment Secret': 'Secrets that every service of an environment sees. Their values are never answered.',
  'Variable Main Calls': 'Variables and secrets of every scope under one path.',
  'Environment Deployment History': 'What was deployed in an environment, when and by whom; reports of builds.',
  'Environment Logs': 'Logs of the deployments of an environment.',
  'Environment Actions': 'Deploy, stop, restart and remove a whole environment, or several of its services at once.',
  'Environment Deployment Status': 'State of one deployment request.',
  'Deployment Queue Actions': 'Cancel a deployment request.',
  Environment: 'Addresses of the services of an environment, and checks before a service is created.',
  service_status: 'State of the public routes of a service.',
  'Environment Export': 'An environment as files of Terraform.',
  'Service Main Calls': 'Services of any kind: the webhook that tells of pushes to their repository.',
  'Lifecycle Template Main Calls': 'Templates of lifecycle jobs, to begin with.',
  Document: 'This document.',
};

/** Descriptions of the tags that each kind of service has, by the suffix of the tag. */
const PARTS: Record<string, (kind: string) => string> = {
  s: (kind) => `Services of kind ${kind} in an environment: list, create and clone them.`,
  ' Main Calls': (kind) => `One service of kind ${kind}: its configuration and its status.`,
  ' Actions': (kind) => `Deploy, stop, restart and remove a service of kind ${kind}.`,
  ' Deployment History': (kind) => `What was deployed of a service of kind ${kind}, when and by whom.`,
  ' Logs': (kind) => `What a service of kind ${kind} writes.`,
  ' Custom Domain': (kind) => `Domains of your own that lead to a service of kind ${kind}.`,
  ' Deployment Restriction': (kind) => `Which pushes deploy a service of kind ${kind} by themselves.`,
  ' Configuration': (kind) => `Advanced settings and network settings of a service of kind ${kind}.`,
  ' Executions': (kind) => `Single runs of a service of kind ${kind}, with their logs.`,
  ' Environment Variable': (kind) => `Variables of a service of kind ${kind}.`,
  ' Secret': (kind) => `Secrets of a service of kind ${kind}. Their values are never answered.`,
};

const OF_KINDS = new Map(
  [...KINDS, ...READ_KINDS].flatMap(({ tag, path }) =>
    Object.entries(PARTS).map(([end, describe]) => [tag + end, describe(path)] as const),
  ),
);

/** Returns the description of a tag. Throws for a tag without one. */
export function describeTag(name: string): string {
  const description = TAGS[name] ?? OF_KINDS.get(name);
  if (description === undefined)
    throw new Error(`The tag ${name} has no description: write one in src/services/api-document/tags.ts.`);
  return description;
}
