import type { CopyJob } from '#runtimes/host/view/copy.ts';

/** Folder or file of the machine that a view shows at a path. */
export interface Bind {
  from: string;
  /** Absolute path inside the view. */
  to: string;
  readOnly: boolean;
}

/** Programs of the machine by absolute path; null when it has none. */
export interface Tools {
  mount: string;
  unshare: string;
  setpriv: string;
  nsenter: string;
  /** `env` with `--default-signal` (coreutils 8.31 or later). */
  env: string | null;
  ip: string | null;
  hostname: string | null;
}

/** Action inside the finished view. */
export type ViewAction =
  | { kind: 'run'; argv: string[]; env: Record<string, string>; cwd: string; account: ViewAccount }
  | { kind: 'copy'; job: CopyJob };

/**
 * Account of a program in a view. `builder` is the view's root with only the capabilities that package managers need; `uid` is an account
 * without any capability.
 */
export type ViewAccount = { kind: 'builder' } | { kind: 'instance'; uid: number };

/**
 * Private, writable copy of the machine, as `view/enter.ts` assembles it inside its own namespaces. JSON in a file of mode 0600 (the
 * environment holds secrets).
 */
export interface ViewPlan {
  /** Empty folder on which the view is put together. */
  root: string;
  /** Folders of the machine that the view shows, relative to `/`. */
  tops: string[];
  /** Folder with the other top-level entries: links and mount points. */
  skeleton: string;
  /** Layers of the image, the newest first. */
  layers: string[];
  /** Layer below those of the image (`owned-folders.ts`); null without. */
  owned: string | null;
  /** Folders for the changes made in the view, and for overlayfs' working files. */
  upper: string;
  work: string;
  /** Layers of a second view, shown read-only for `COPY --from`. */
  from: { layers: string[]; upper: string; work: string } | null;
  /** Folders and files of the machine that appear empty. */
  hidden: string[];
  binds: Bind[];
  /** Folders that are created if absent, for the account that runs in the view. */
  folders: string[];
  /** Node's executable, shown at the end of PATH. */
  node: string;
  /** Content of /etc/resolv.conf, written where its link leads; null leaves the file unchanged. */
  resolv: string | null;
  hostname: string;
  /** `cgroup.procs` files that the process joins. */
  cgroups: string[];
  /**
   * Network of the view: `outer` is the network of its starting process. Otherwise the view has its own network that leads nowhere, with at
   * most a proxy in it.
   */
  network: 'outer' | 'none' | { proxyPort: number };
  /** Folder of the outer tree that the view moves to; everything except it and the machine's programs is covered. */
  anchor: string;
  /** True if the view is in a user namespace (an ordinary user) rather than owned by root. */
  nested: boolean;
  tools: Tools;
  action: ViewAction;
}

/** Folder inside every view for the runtime's own files. */
export const OURS = '/run/quarterdeck';

/** Exit status of a view whose COPY failed; its one line of output says why. */
export const COPY_FAILED = 124;

/** Home of every account in a view, as in most images. */
export const HOME = '/root';

/** Capabilities that package managers need to install files for other accounts; no mounts, devices, tracing or networks. */
const BUILDER = ['chown', 'dac_override', 'fowner', 'fsetid', 'kill', 'setgid', 'setuid', 'net_bind_service'];

/** Returns the account that owns the files made for a view; null for the account that makes them. */
export function ownerOf({ nested, action }: ViewPlan): number | null {
  // A nested user namespace has a single account, which owns every new file.
  if (nested) return null;
  if (action.kind === 'copy') return action.job.owner ?? null;
  return action.account.kind === 'instance' ? action.account.uid : null;
}

/** Returns the arguments that create a view's namespaces; the program after `--` is their first process. */
export function unshareArguments({ nested, network }: Pick<ViewPlan, 'nested' | 'network'>): string[] {
  const own = network === 'outer' ? [] : ['--net'];
  const spaces = ['--mount', '--pid', '--fork', '--kill-child', '--ipc', '--uts', ...own];
  return nested ? ['--user', '--map-root-user', ...spaces, '--'] : [...spaces, '--'];
}

/**
 * Returns the program that replaces `enter.ts`. It stays as the namespace's first process, so that its child is an ordinary process that
 * SIGTERM ends. On the way it drops all privileges (root, account, capabilities, new privileges).
 */
export function runArguments(plan: ViewPlan, root: string, action: ViewAction & { kind: 'run' }): string[] {
  const { tools, nested } = plan;
  const signals = tools.env ? [tools.env, '--default-signal=PIPE,XFSZ'] : [];
  const place = ['--fork', `--root=${root}`, `--wd=${action.cwd}`];
  if (action.account.kind === 'builder') {
    const kept = ['-all', ...[...BUILDER, 'sys_chroot'].map((name) => `+${name}`)].join(',');
    const drop = [tools.setpriv, '--no-new-privs', `--bounding-set=${kept}`, '--inh-caps=-all'];
    return [...signals, ...drop, tools.unshare, ...place, '--', ...action.argv];
  }
  const uid = action.account.uid;
  const account = nested
    ? ['--user', `--map-user=${uid}`, `--map-group=${uid}`]
    : [`--setgid=${uid}`, `--setuid=${uid}`];
  return [...signals, tools.setpriv, '--no-new-privs', tools.unshare, ...account, ...place, '--', ...action.argv];
}
