import { join } from 'node:path';
import { NETWORK_PLUGINS, type KubernetesPrograms } from '#test/harness/kubernetes/programs.ts';
import type { Component } from '#test/harness/kubernetes/supervisor.ts';

/** Addresses of one of the clusters that a machine may have at a time. */
export interface AddressPlan {
  link: string;
  host: string;
  node: string;
  pods: string;
  services: string;
  dns: string;
}

/** Number of clusters that a machine can have at a time, as several runs of tests may go on. */
export const MAX_CLUSTERS = 16;

/** Returns the addresses of the cluster with the given number: from 10.220.0.0/14, which no runtime uses. */
export function planAddresses(index: number): AddressPlan {
  const block = index * (256 / MAX_CLUSTERS);
  return {
    link: `qdk${index}`,
    host: `10.220.${index}.1`,
    node: `10.220.${index}.2`,
    pods: `10.221.${block}.0/20`,
    services: `10.222.${block}.0/20`,
    dns: `10.222.${block}.10`,
  };
}

export interface Layout {
  folder: string;
  programs: KubernetesPrograms;
  addresses: AddressPlan;
  /** Control group below which all pods are. */
  group: string;
}

/** Image of the container that holds a pod's network. */
export const PAUSE_IMAGE = 'quarterdeck-test-pause:1';

const NODE_NAME = 'node-1';
const CLUSTER_DOMAIN = 'cluster.local';

const ETCD_URL = 'http://127.0.0.1:2379';
const ETCD_PEER_URL = 'http://127.0.0.1:2380';

const apiServerUrl = ({ addresses }: Layout): string => `https://${addresses.node}:6443`;
export const containerdSocket = (folder: string): string => join(folder, 'containerd.sock');

/** Returns the components that need no API server, and the API server itself, which waits for etcd. */
export const firstComponents = (layout: Layout): Component[] => [etcd(layout), containerd(layout), apiServer(layout)];

/** Returns the components that are started once the API server answers. */
export const otherComponents = (layout: Layout): Component[] => [
  kubelet(layout),
  controllerManager(layout),
  ofKubernetes(layout, 'kube-scheduler', [['--kubeconfig', kubeconfig(layout)], ['--leader-elect=false']]),
  proxy(layout),
  ofKubernetes(layout, 'coredns', [['-conf', join(layout.folder, 'Corefile')]]),
];

const kubeconfig = ({ folder }: Layout): string => join(folder, 'kubeconfig');

const ofKubernetes = ({ programs }: Layout, name: string, args: string[][]): Component => ({
  name,
  program: programs.allInOne,
  args: [name, ...args.flat()],
});

/** The data are in the memory of the cluster's own `/var/lib`: nothing waits for the disk, and nothing is left of them. */
const etcd = ({ programs }: Layout): Component => ({
  name: 'etcd',
  program: programs.etcd,
  args: [
    ['--data-dir', '/var/lib/etcd'],
    ['--listen-client-urls', ETCD_URL],
    ['--advertise-client-urls', ETCD_URL],
    ['--listen-peer-urls', ETCD_PEER_URL],
    ['--initial-advertise-peer-urls', ETCD_PEER_URL],
    ['--initial-cluster', `default=${ETCD_PEER_URL}`],
  ].flat(),
});

const containerd = ({ programs, folder }: Layout): Component => ({
  name: 'containerd',
  program: programs.containerd,
  args: ['--config', join(folder, 'containerd.toml')],
});

const apiServer = (layout: Layout): Component => {
  const { folder, addresses } = layout;
  return ofKubernetes(layout, 'kube-apiserver', [
    ['--etcd-servers', ETCD_URL],
    ['--bind-address', addresses.node],
    ['--advertise-address', addresses.node],
    ['--cert-dir', join(folder, 'certificates')],
    ['--allow-privileged'],
    ['--authorization-mode', 'RBAC'],
    ['--token-auth-file', join(folder, 'tokens.csv')],
    ['--service-cluster-ip-range', addresses.services],
    ['--service-account-issuer', 'https://kubernetes.default.svc'],
    ['--service-account-key-file', join(folder, 'accounts.pub')],
    ['--service-account-signing-key-file', join(folder, 'accounts.key')],
    ['--kubelet-client-certificate', join(folder, 'kubelet-client.crt')],
    ['--kubelet-client-key', join(folder, 'kubelet-client.key')],
    // Without it logs and exec look the node's name up.
    ['--kubelet-preferred-address-types', 'InternalIP'],
  ]);
};

const controllerManager = (layout: Layout): Component =>
  ofKubernetes(layout, 'kube-controller-manager', [
    ['--kubeconfig', kubeconfig(layout)],
    ['--leader-elect=false'],
    ['--service-account-private-key-file', join(layout.folder, 'accounts.key')],
    ['--root-ca-file', join(layout.folder, 'certificates/apiserver.crt')],
    ['--horizontal-pod-autoscaler-sync-period=1s'],
  ]);

const kubelet = (layout: Layout): Component =>
  ofKubernetes(layout, 'kubelet', [
    ['--kubeconfig', kubeconfig(layout)],
    ['--config', join(layout.folder, 'kubelet.json')],
    ['--root-dir', join(layout.folder, 'kubelet')],
    ['--cert-dir', join(layout.folder, 'certificates')],
    ['--hostname-override', NODE_NAME],
    ['--node-ip', layout.addresses.node],
  ]);

const proxy = (layout: Layout): Component =>
  ofKubernetes(layout, 'kube-proxy', [
    ['--kubeconfig', kubeconfig(layout)],
    ['--proxy-mode', 'iptables'],
    ['--cluster-cidr', layout.addresses.pods],
    ['--hostname-override', NODE_NAME],
    ['--iptables-min-sync-period', '100ms'],
    // These belong to the whole machine, and a process may only raise its own value.
    ['--conntrack-max-per-core=0', '--conntrack-tcp-timeout-established=0', '--conntrack-tcp-timeout-close-wait=0'],
    ['--oom-score-adj=0'],
  ]);

/** Returns the configuration files of the components, by path within the folder. */
export const configurationFiles = (layout: Layout): Record<string, string> => ({
  'containerd.toml': containerdConfiguration(layout),
  'network/cluster.conflist': JSON.stringify(networkConfiguration(layout)),
  'kubelet.json': JSON.stringify(kubeletConfiguration(layout)),
  'resolv.conf': '',
  Corefile: dnsConfiguration(layout),
});

/** `restrict_oom_score_adj` lets containers start where root may not lower a process's score, as in many sandboxes. */
const containerdConfiguration = ({ folder }: Layout): string => `version = 2
root = "${folder}/containerd"
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.internal.v1.tracing", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.native", "io.containerd.snapshotter.v1.zfs",
]
[grpc]
  address = "${containerdSocket(folder)}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/${PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${NETWORK_PLUGINS}"
    conf_dir = "${folder}/network"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${folder}/registries"
`;

/** Each pod has a link of its own to the node: a bridge would take `br_netfilter` for Services to answer. */
const networkConfiguration = ({ addresses }: Layout): object => ({
  cniVersion: '1.0.0',
  name: 'cluster',
  plugins: [
    {
      type: 'ptp',
      ipam: {
        type: 'host-local',
        ranges: [[{ subnet: addresses.pods }]],
        routes: [{ dst: '0.0.0.0/0' }],
        dataDir: '/run/network',
      },
    },
    { type: 'portmap', capabilities: { portMappings: true } },
  ],
});

/** Settings by which kubelet evicts no pod and removes no image, however full the machine's disk is. */
const kubeletConfiguration = ({ folder, addresses, group }: Layout): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address: addresses.node,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: false },
    x509: { clientCAFile: join(folder, 'kubelet-client.crt') },
  },
  authorization: { mode: 'AlwaysAllow' },
  containerRuntimeEndpoint: `unix://${containerdSocket(folder)}`,
  cgroupDriver: 'cgroupfs',
  cgroupRoot: group,
  failCgroupV1: false,
  failSwapOn: false,
  clusterDNS: [addresses.dns],
  clusterDomain: CLUSTER_DOMAIN,
  resolvConf: join(folder, 'resolv.conf'),
  volumePluginDir: join(folder, 'volume-plugins'),
  maxPods: 250,
  oomScoreAdj: 0,
  serializeImagePulls: false,
  imageGCHighThresholdPercent: 100,
  evictionHard: { 'memory.available': '1Mi', 'nodefs.available': '1Mi', 'imagefs.available': '1Mi' },
});

/** CoreDNS runs on the node, and a Service without selector leads to it. */
const dnsConfiguration = (layout: Layout): string => `.:53 {
  errors
  ready ${layout.addresses.node}:8181
  kubernetes ${CLUSTER_DOMAIN} in-addr.arpa {
    kubeconfig ${kubeconfig(layout)}
    pods insecure
    ttl 0
  }
}
`;

/** Returns the kubeconfig of an administrator. */
export const makeKubeconfig = (layout: Layout, certificate: string, token: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    clusters: [
      {
        name: 'test',
        cluster: {
          server: apiServerUrl(layout),
          'certificate-authority-data': Buffer.from(certificate).toString('base64'),
        },
      },
    ],
    users: [{ name: 'test', user: { token } }],
  });

/** Returns the objects by which pods reach CoreDNS, with the collections that they are created in. */
export const dnsObjects = ({ addresses }: Layout): [path: string, object: object][] => {
  const ports = [
    { name: 'dns', port: 53, protocol: 'UDP' },
    { name: 'dns-tcp', port: 53, protocol: 'TCP' },
  ];
  const metadata = { name: 'kube-dns', labels: { 'kubernetes.io/service-name': 'kube-dns' } };
  return [
    ['/api/v1/namespaces/kube-system/services', { metadata, spec: { clusterIP: addresses.dns, ports } }],
    [
      '/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices',
      { metadata, addressType: 'IPv4', ports, endpoints: [{ addresses: [addresses.node] }] },
    ],
  ];
};
