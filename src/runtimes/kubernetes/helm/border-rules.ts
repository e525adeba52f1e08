/** Place in the API of a cluster that a request leads to. */
export interface Target {
  /** Path made anew of the decoded parts, so that the cluster cannot read it in another way. */
  path: string;
  /** True for what the API server tells about its version and its kinds of objects. */
  isDiscovery: boolean;
  /** Path of the group's version: `/api/v1`, `/apis/apps/v1`. */
  group: string;
  /** Null for objects of the whole cluster, and for lists over all namespaces. */
  namespace: string | null;
  /** Name of the kind in paths: `secrets`. */
  resource: string;
  name: string | null;
  /** `status`, `scale`, `log`; null for the object itself. */
  subresource: string | null;
}

/** Parses a path; null for one that no client of the API sends. */
export function parseTarget(path: string): Target | null {
  const parts = partsOf(path);
  if (parts === null) return null;
  const nothing = { group: '', namespace: null, resource: '', name: null, subresource: null };
  const canonical = `/${parts.map(encodeURIComponent).join('/')}`;
  const [root] = parts;
  const count = root === 'api' ? 2 : 3;
  if (root === 'version' || root === 'openapi' || ((root === 'api' || root === 'apis') && parts.length <= count))
    return { ...nothing, path: canonical, isDiscovery: true };
  if (root !== 'api' && root !== 'apis') return null;
  const group = `/${parts.slice(0, count).map(encodeURIComponent).join('/')}`;
  const rest = parts.slice(count);
  const isInside = rest[0] === 'namespaces' && rest.length > 2 && !NAMESPACE_PARTS.includes(rest[2]!);
  const [resource, name = null, subresource = null, ...more] = isInside ? rest.slice(2) : rest;
  if (more.length > 0 || resource === 'watch' || resource === 'proxy') return null;
  const namespace = isInside ? rest[1]! : null;
  return { path: canonical, isDiscovery: false, group, namespace, resource: resource!, name, subresource };
}

/** Parts below a namespace that are its own, not kinds of objects in it. */
const NAMESPACE_PARTS = ['status', 'finalize'];

/** Decodes the parts of a path; null where one could be read as another path. */
function partsOf(path: string): string[] | null {
  if (!path.startsWith('/')) return null;
  try {
    const parts = path.slice(1).split('/').map(decodeURIComponent);
    const isPlain = parts.every(
      (part) => part !== '' && part !== '.' && part !== '..' && !/[\\/%?#\p{Cc}]/u.test(part),
    );
    return isPlain ? parts : null;
  } catch {
    // Not encoded as UTF-8.
    return null;
  }
}

/** Decision about a request: what it must be looked up for before it goes on, or why it does not. */
export type Verdict =
  | { refusal: string }
  | {
      refusal: null;
      /** True if the object may be another service's: those are not changed. */
      mayBeOthers: boolean;
      /** Namespace that must be no environment's. */
      foreign: string | null;
      /** True if the kind must be one of objects of the whole cluster. */
      mustBeClusterWide: boolean;
    };

interface Border {
  /** Namespace of the environment. */
  namespace: string;
  allowClusterWide: boolean;
}

const READS = ['GET', 'HEAD'];
const WRITES = ['POST', 'PUT', 'PATCH', 'DELETE'];
const SUBRESOURCES = [null, 'status', 'scale'];
/** Kinds that a chart asks about rights and accounts with, or that stand for others. */
const REFUSED_GROUPS = /^\/apis\/(authentication|authorization|certificates)\.k8s\.io\//;

const ALLOWED = { refusal: null, mayBeOthers: false, foreign: null, mustBeClusterWide: false } as const;

/** Decides whether helm may send a request. Everything that is not known to be harmless is refused. */
export function decide(method: string, target: Target | null, { namespace, allowClusterWide }: Border): Verdict {
  if (target === null) return { refusal: 'A chart may not ask for this path.' };
  const isRead = READS.includes(method);
  if (!isRead && !WRITES.includes(method)) return { refusal: `A chart may not send ${method}.` };
  if (target.isDiscovery) return isRead ? ALLOWED : { refusal: 'A chart may only read what the cluster knows.' };
  const { group, resource, name, subresource } = target;
  const isLog = subresource === 'log' && resource === 'pods' && isRead;
  if (!SUBRESOURCES.includes(subresource) && !isLog)
    return { refusal: `A chart may not use ${subresource} of ${resource}.` };
  // Addresses of load balancers stand there, which no chart tells.
  if (subresource === 'status' && !isRead) return { refusal: `A chart may not write the status of ${resource}.` };
  if (REFUSED_GROUPS.test(`${group}/`)) return { refusal: `A chart may not use ${resource}.` };
  if (method === 'DELETE' && name === null) return { refusal: `A chart may not delete all ${resource}.` };
  const mayBeOthers = !isRead && name !== null;
  if (target.namespace === namespace) return { ...ALLOWED, mayBeOthers };
  const isOwnNamespace = target.namespace === null && resource === 'namespaces' && name === namespace;
  if (isOwnNamespace) return isRead ? ALLOWED : { refusal: 'A chart may not change the namespace of its environment.' };
  if (!allowClusterWide) return { refusal: outside(target) };
  return decideOutside(method, target, mayBeOthers);
}

function decideOutside(method: string, target: Target, mayBeOthers: boolean): Verdict {
  const { namespace, resource, name } = target;
  if (resource === 'secrets') return { refusal: 'A chart may not read or change secrets of other namespaces.' };
  if (namespace !== null) return { ...ALLOWED, mayBeOthers, foreign: namespace };
  if (resource === 'namespaces' && name !== null) return { ...ALLOWED, mayBeOthers, foreign: name };
  if (resource === 'namespaces' && method !== 'POST') return { refusal: 'A chart may not list namespaces.' };
  return { ...ALLOWED, mayBeOthers, mustBeClusterWide: name === null };
}

function outside({ namespace, resource, name }: Target): string {
  const what = name === null ? resource : `${resource}/${name}`;
  const place = namespace === null ? 'is of the whole cluster' : `is in the namespace ${namespace}`;
  return `${what} ${place}, and the chart may have objects of its environment only: set allow_cluster_wide_resources if you trust it.`;
}
