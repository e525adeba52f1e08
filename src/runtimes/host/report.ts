import type { HostParts } from '#runtimes/host/host-parts.ts';
import type { RuntimeReport } from '#runtimes/runtime.ts';

/** Returns the runtime's mode on this machine, and its limits. */
export function reportOf({ machine, cgroups, network }: HostParts): RuntimeReport {
  const account = machine.asRoot ? 'as root' : 'as an ordinary user';
  const limits = [
    'It is for code that you trust: workloads share the kernel of this machine. A cluster with Docker or Kubernetes separates more.',
    'FROM stands for this machine itself, and images from a registry cannot run; install Docker or Podman for those.',
  ];
  if (machine.mode === 'plain')
    limits.push(
      `There are no namespaces (${machine.reason}): workloads run as ordinary processes in folders of their own, see the whole machine, and absolute paths outside of the Dockerfile's WORKDIR are refused. A Linux with user namespaces and util-linux mends it.`,
    );
  if (machine.mode === 'plain' && !machine.asRoot)
    limits.push('Workloads have the account of the control plane and can read its files.');
  if (!cgroups.usable)
    limits.push(
      'CPU and memory are not limited: control groups cannot be written here. Run as root or delegate a cgroup.',
    );
  return {
    ok: true,
    description: `host, ${machine.mode === 'plain' ? 'plain folders' : 'namespaces'}, ${account}`,
    limits: [...limits, ...network.limits()],
    missing: missingFrom(machine),
  };
}

/** Returns the features that this machine does not allow, with the remedies. */
export function missingFrom({ mode, reason, tools }: HostParts['machine']): { egress?: string } {
  if (mode !== 'namespaces')
    return {
      egress: `This machine has no namespaces (${reason}), which it takes to keep a command to a list of hosts: use a cluster whose runtime is docker.`,
    };
  return tools.ip === null
    ? { egress: 'A command cannot be kept to a list of hosts here: install ip (iproute2) on this machine.' }
    : {};
}
