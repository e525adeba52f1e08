import type { Server } from 'node:net';
import { TestGateway, openCluster } from '#runtimes/kubernetes/testing.ts';
import type { TestCluster } from '#test/harness/kubernetes-cluster.ts';
import { letPull } from '#test/harness/kubernetes-registry.ts';
import { Program } from '#test/harness/program.ts';
import { startRegistry, type TestRegistry } from '#test/harness/registry.ts';

interface Options {
  settings?: Record<string, string>;
  registry?: Parameters<typeof startRegistry>[0];
}

/** The real program beside a cluster of the tests, with a registry that the nodes of that cluster pull from. */
export class KubernetesProgram {
  readonly program: Program;
  readonly registry: TestRegistry;
  /** Id of the only organization. */
  readonly organization: string;
  /** The cluster with all rights, for the part of its operator. */
  readonly administrator: ReturnType<typeof openCluster>['cluster'];
  readonly #kubeconfig: string;
  readonly #forwarder: Server | null;

  private constructor(
    { kubeconfig }: TestCluster,
    program: Program,
    registry: TestRegistry,
    { organization, forwarder }: { organization: string; forwarder: Server | null },
  ) {
    this.program = program;
    this.registry = registry;
    this.organization = organization;
    this.administrator = openCluster({ kubeconfig }, 'none').cluster;
    this.#kubeconfig = kubeconfig;
    this.#forwarder = forwarder;
  }

  static async start(
    cluster: TestCluster,
    { settings = {}, registry: options }: Options = {},
  ): Promise<KubernetesProgram> {
    const registry = await startRegistry(options);
    // Nodes of a cluster that was there before are not ours to configure.
    const forwarder = cluster.directory === null ? null : await letPull(cluster, registry);
    const program = await Program.start({
      QUARTERDECK_RUNTIME: 'fake',
      QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: `127.0.0.0/8, ${cluster.nodeAddress}/32`,
      ...settings,
    });
    const organization = (await program.ask('GET', '/organization')).results[0].id;
    return new KubernetesProgram(cluster, program, registry, { organization, forwarder });
  }

  /** Returns the path of the organization, or of something in it. */
  of = (path = ''): string => `/organization/${this.organization}${path}`;

  /** Makes a cluster without a kubeconfig; returns its id. */
  async makeCluster(name = 'k8s'): Promise<string> {
    const body = { name, region: 'here', cloud_provider: 'ON_PREMISE', runtime: 'kubernetes' };
    return (await this.program.ask('POST', this.of('/cluster'), body)).id;
  }

  useKubeconfig = (clusterId: string, kubeconfig = this.#kubeconfig) =>
    this.program.putText(this.of(`/cluster/${clusterId}/kubeconfig`), kubeconfig, 'application/x-yaml');

  /** Deploys a cluster, which checks it; returns its status. */
  deployCluster = (clusterId: string) => this.program.ask('POST', this.of(`/cluster/${clusterId}/deploy?wait=60`));

  /** Makes an environment on a cluster, in a project of its own; returns its id. */
  async makeEnvironment(clusterId: string, name = 'k8s'): Promise<string> {
    const project = (await this.program.ask('POST', this.of('/project'), { name: `of ${name}` })).id;
    const body = { name, cluster_id: clusterId };
    return (await this.program.ask('POST', `/project/${project}/environment`, body)).id;
  }

  /** Makes the registry known to the organization; returns its id. */
  async makeImageRegistry(): Promise<string> {
    const body = { name: 'images', kind: 'GENERIC_CR', url: this.registry.url, config: {} };
    return (await this.program.ask('POST', this.of('/containerRegistry'), body)).id;
  }

  /** Returns a gateway that follows what the program makes in the cluster. */
  gateway = (): TestGateway =>
    new TestGateway({ ...this.administrator, installation: this.program.running.base.installation.id });

  async close(): Promise<void> {
    await this.program.close();
    this.#forwarder?.close();
    await this.registry.stop();
    await this.administrator.connection.close();
  }
}
