const RBAC = /^\/apis\/rbac\.authorization\.k8s\.io\//;
/** Verbs that give more than their holder has. */
const RAISING = ['escalate', 'bind', 'impersonate'];
const READING = ['get', 'list', 'watch'];
/** Kinds of which all verbs include those that give more than their holder has. */
const RIGHTS = ['roles', 'rolebindings'];

/**
 * Returns why a chart of one environment may not write an object; null if it may. Refused is what gives rights beyond the environment, or
 * takes traffic of others. The account of the cluster has rights to all namespaces: what the API server lets it pass on is too much for a pod.
 */
export function escalationIn(
  { group, resource }: { group: string; resource: string },
  object: Record<string, unknown>,
  namespace: string,
): string | null {
  if (RBAC.test(group) && resource === 'roles') return whyRole(object);
  if (RBAC.test(group) && resource === 'rolebindings') return whyBinding(object, namespace);
  if (group === '/api/v1' && resource === 'services' && textsOf(fieldsOf(object['spec'])['externalIPs']).length > 0)
    return refusalFor('A Service may not have external addresses (externalIPs): it would take the traffic of others');
  return null;
}

const refusalFor = (what: string): string => `${what}: set allow_cluster_wide_resources if you trust the chart.`;

function whyRole({ rules }: Record<string, unknown>): string | null {
  for (const rule of listOf(rules)) {
    const resources = textsOf(fieldsOf(rule)['resources']);
    const verbs = textsOf(fieldsOf(rule)['verbs']);
    const wide = resources.find((one) => one.startsWith('*'));
    if (wide !== undefined)
      return refusalFor(`A Role may not name all resources (${wide}), which include the namespace itself`);
    const kinds = resources.map((one) => one.split('/')[0]!);
    // The rights to a namespace are rights within it: with them a pod could take the rules of its environment off.
    if (kinds.includes('namespaces') && verbs.some((verb) => !READING.includes(verb)))
      return refusalFor('A Role may not change namespaces');
    const raising = verbs.find(
      (verb) => RAISING.includes(verb) || (verb === '*' && kinds.some((kind) => RIGHTS.includes(kind))),
    );
    if (raising !== undefined) return refusalFor(`A Role may not have the verb ${raising} of ${resources.join(', ')}`);
  }
  return null;
}

function whyBinding({ roleRef, subjects }: Record<string, unknown>, namespace: string): string | null {
  if (roleRef !== undefined && fieldsOf(roleRef)['kind'] !== 'Role')
    return refusalFor('A RoleBinding may name a Role of the chart only, no ClusterRole');
  const foreign = listOf(subjects)
    .map(fieldsOf)
    .find((subject) => !isInside(subject, namespace));
  if (foreign === undefined) return null;
  const name = [foreign['namespace'], foreign['name']].filter((part) => typeof part === 'string').join('/');
  return refusalFor(`A RoleBinding may not give rights in the environment to ${String(foreign['kind'])} ${name}`);
}

/** Returns whether a subject is of the environment. */
function isInside({ kind, name, namespace: of }: Record<string, unknown>, namespace: string): boolean {
  switch (kind) {
    case 'ServiceAccount':
      return of === namespace;
    case 'Group':
      return name === `system:serviceaccounts:${namespace}`;
    default:
      return typeof name === 'string' && name.startsWith(`system:serviceaccount:${namespace}:`);
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const textsOf = (value: unknown): string[] => listOf(value).filter((one) => typeof one === 'string');

/** Returns the fields of an object; none of what is no object. */
export const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
