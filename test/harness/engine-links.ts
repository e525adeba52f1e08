/**
 * Returns whether a network link of this machine belongs to a container engine or a Kubernetes cluster: suites with one run beside those of
 * the host runtime, and make and remove links meanwhile.
 */
export const isLinkOfEngine = (name: string): boolean =>
  /^(docker\d+|br-[0-9a-f]+|veth[0-9a-f]+|qdt[0-9a-z]+|qdk\d+)$/.test(name);
