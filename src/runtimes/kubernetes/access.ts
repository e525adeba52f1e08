/** Access to the API server of a cluster, as a kubeconfig gives it. Texts of certificates and keys are PEM. Never for a log. */
export interface ClusterAccess {
  /** Address of the API server: `https://host:port`, perhaps with a path. */
  server: string;
  /** Name that the server's certificate is for, where it is not the host of `server`. */
  serverName: string | null;
  /** Authorities of the server's certificate; null for those of the system. */
  authorities: string | null;
  /** True if the server's certificate is not verified, as the kubeconfig asks. */
  insecure: boolean;
  /** Certificate and key of the client. */
  certificate: { certificate: string; key: string } | null;
  token: string | null;
}

/** Returns the addresses that a host may be connected at. Throws an error for people if one of them is forbidden. */
export type AddressPolicy = (host: string) => Promise<string[]>;
