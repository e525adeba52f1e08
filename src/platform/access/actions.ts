/** Levels of access, from nothing to everything. Each includes the ones before it (docs/contributing/rules.md 22). */
export const LEVELS = ['NONE', 'READ', 'DEPLOY', 'WRITE', 'ADMIN'] as const;
export type Level = (typeof LEVELS)[number];

/** Returns whether `held` includes `needed`. */
export const includes = (held: Level, needed: Level): boolean => LEVELS.indexOf(held) >= LEVELS.indexOf(needed);

/**
 * Every action that a route can declare, and the level it takes (docs/contributing/rules.md 7, 23). This is the whole table: the generated
 * docs/access.md and the access suite read it.
 */
export const ACTIONS = {
  'account.read': 'READ',
  'account.edit': 'READ',
  'organization.read': 'READ',
  'organization.deploy': 'DEPLOY',
  'organization.edit': 'ADMIN',
  'organization.delete': 'ADMIN',
  'member.read': 'READ',
  'member.edit': 'ADMIN',
  'role.read': 'READ',
  'role.edit': 'ADMIN',
  'apiToken.read': 'READ',
  'apiToken.edit': 'ADMIN',
  'gitToken.read': 'READ',
  'gitToken.edit': 'ADMIN',
  'mcpServer.read': 'READ',
  'mcpServer.edit': 'ADMIN',
  'containerRegistry.read': 'READ',
  'containerRegistry.edit': 'ADMIN',
  'helmRepository.read': 'READ',
  'helmRepository.edit': 'ADMIN',
  'metadataGroup.read': 'READ',
  'metadataGroup.edit': 'WRITE',
  'credentials.read': 'READ',
  'credentials.edit': 'ADMIN',
  'cluster.read': 'READ',
  // Putting an environment on a cluster: ENV_CREATOR of custom roles.
  'cluster.use': 'WRITE',
  'cluster.edit': 'ADMIN',
  'cluster.deploy': 'ADMIN',
  'cluster.secrets': 'ADMIN',
  'billing.read': 'READ',
  'billing.edit': 'ADMIN',
  'enterpriseConnection.read': 'READ',
  'enterpriseConnection.edit': 'ADMIN',
  'alertReceiver.read': 'READ',
  'alertReceiver.edit': 'ADMIN',
  'alertRule.read': 'READ',
  'alertRule.edit': 'WRITE',
  'webhook.read': 'READ',
  'webhook.edit': 'ADMIN',
  'event.read': 'READ',
  'project.create': 'WRITE',
  'project.read': 'READ',
  'project.edit': 'WRITE',
  'project.delete': 'WRITE',
  'environment.create': 'WRITE',
  'environment.read': 'READ',
  'environment.edit': 'WRITE',
  'environment.delete': 'WRITE',
  'environment.deploy': 'DEPLOY',
  'environment.uninstall': 'WRITE',
  // Programs beside a service, which read its variables and secrets, and connections to its ports.
  'service.shell': 'WRITE',
  'service.portForward': 'WRITE',
  'service.create': 'WRITE',
  'service.read': 'READ',
  'service.edit': 'WRITE',
  'service.deploy': 'DEPLOY',
  'service.uninstall': 'WRITE',
  'service.delete': 'WRITE',
  // Whatever deletes or uninstalls an application, container or database takes ADMIN (docs/contributing/rules.md, *Authentication* rule 5).
  'workload.delete': 'ADMIN',
  // Data and passwords of databases.
  'database.credentials': 'WRITE',
  'database.backup': 'WRITE',
  'variable.read': 'READ',
  'variable.edit': 'WRITE',
} as const satisfies Record<string, Level>;

export type Action = keyof typeof ACTIONS;
