import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';

/** Folder into which `.ci/kubernetes` builds. */
const BUILT = 'quarterdeck-ci/kubernetes-1.34.1';

/** Folder of the CNI plugins in Debian's containernetworking-plugins. */
export const NETWORK_PLUGINS = '/usr/lib/cni';

/** Absolute paths of the programs that a cluster consists of. */
export interface KubernetesPrograms {
  allInOne: string;
  etcd: string;
  containerd: string;
  ctr: string;
  helm: string;
}

/** Returns the programs of a cluster, or null if the machine lacks a part. */
export function findKubernetesPrograms(env: NodeJS.ProcessEnv): KubernetesPrograms | null {
  const cache = env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  const folders = [...(env['PATH'] ?? '').split(delimiter), '/usr/local/bin', '/usr/bin', '/usr/sbin', '/sbin'];
  const find = (name: string, more: string[] = []): string =>
    [...folders, ...more].map((folder) => join(folder, name)).find((file) => existsSync(file)) ?? '';
  const programs = {
    allInOne: find('kubernetes-all-in-one', [join(cache, BUILT)]),
    etcd: find('etcd'),
    containerd: find('containerd'),
    ctr: find('ctr'),
    helm: find('helm', [join(cache, BUILT)]),
  };
  const others = [find('unshare'), find('nsenter'), find('ip'), find('iptables'), find('runc'), find('busybox')];
  const isComplete = [...Object.values(programs), ...others].every(Boolean) && existsSync(`${NETWORK_PLUGINS}/ptp`);
  return isComplete ? programs : null;
}

/** Returns whether tests can have a cluster: the one of `KUBECONFIG`, or one of their own, which takes root. */
export const canHaveCluster = (env: NodeJS.ProcessEnv): boolean =>
  Boolean(env['KUBECONFIG']) || (process.getuid?.() === 0 && findKubernetesPrograms(env) !== null);
