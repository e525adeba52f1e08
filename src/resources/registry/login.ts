import type { HttpClient } from '#platform/http-client/index.ts';
import { RegistryError, type Credentials } from '#platform/oci/index.ts';
import type { SplitConfiguration } from '#resources/registry/configuration.ts';
import { ecrLogin, type EcrApi } from '#resources/registry/ecr.ts';

/** Parts that `loginOf` needs to ask another system for a password, where a registry takes such passwords. */
export interface LoginParts {
  http: HttpClient;
  now: Date;
  /** Setting with the address of ECR's API, in which `{region}` and `{domain}` are filled in. */
  ecrUrl: string;
  signal?: AbortSignal;
}

/**
 * User name and password by which a registry is entered; null where it is entered without. Throws RegistryError for credentials that
 * take an identity in a cloud, which this program has not: of Amazon's roles, Google's workload identity and Azure's directory.
 */
export async function loginOf({ config, secrets }: SplitConfiguration, parts: LoginParts): Promise<Credentials | null> {
  const ecr = ecrApiOf({ config, secrets }, parts);
  if (ecr) return ecrLogin(ecr);
  // Scaleway's registries take any user name with the secret key.
  if (secrets['scaleway_secret_key']) return { username: 'nologin', password: String(secrets['scaleway_secret_key']) };
  if (secrets['json_credentials']) return googleLogin(String(secrets['json_credentials']));
  if (secrets['password']) return { username: String(config['username']), password: String(secrets['password']) };
  if (config['role_arn']) throw foreign('a role of AWS', 'access_key_id and secret_access_key');
  if (config['gcp_credentials_type']) throw foreign('workload identity of Google Cloud', 'json_credentials');
  if (config['azure_tenant_id']) throw foreign('a directory of Azure', 'username and password');
  return null;
}

/** Returns the API of Amazon's registries, where the configuration is for one of them. */
export const ecrApiOf = (
  { config, secrets }: SplitConfiguration,
  { http, now, ecrUrl, signal }: LoginParts,
): EcrApi | undefined =>
  secrets['secret_access_key']
    ? {
        http,
        template: ecrUrl,
        region: String(config['region']),
        keys: { accessKeyId: String(config['access_key_id']), secretAccessKey: String(secrets['secret_access_key']) },
        at: now,
        ...(signal ? { signal } : {}),
      }
    : undefined;

const foreign = (identity: string, instead: string) =>
  new RegistryError(
    'unsupported',
    `Its credentials take ${identity}, which this program cannot act as: give ${instead}.`,
  );

/** Google takes the key file of a service account as the password, also in base64. */
function googleLogin(key: string): Credentials {
  return { username: key.trimStart().startsWith('{') ? '_json_key' : '_json_key_base64', password: key };
}
