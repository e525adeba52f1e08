import { fetchPage } from '#platform/http/paging.ts';
import { defineRoute, type Route } from '#platform/http/route.ts';
import { ListOf, PageQuery, type TSchema } from '#platform/http/schema.ts';
import { ClusterCredentials, organizationTarget } from '#resources/organization/index.ts';
import { listCredentials, type CloudProvider } from '#resources/credentials/queries.ts';
import * as schema from '#resources/credentials/schema.ts';
import {
  createCredentials,
  deleteCredentials,
  editCredentials,
  toCredentialsView,
} from '#resources/credentials/service.ts';
import {
  awsParts,
  azureParts,
  gcpParts,
  onPremiseParts,
  scalewayParts,
  type AccountParts,
} from '#resources/credentials/shapes.ts';
import { credentialsTarget } from '#resources/credentials/target.ts';

const TAG = 'Cloud Provider Credentials';

const ClusterCredentialsList = ListOf(ClusterCredentials);

interface Provider {
  cloudProvider: CloudProvider;
  /** Segment of the path. */
  path: string;
  /** End of the operation ids. */
  operation: string;
  /** For people. */
  name: string;
  body: TSchema;
  parts(input: schema.CredentialsInput): AccountParts;
}

const PROVIDERS: Provider[] = [
  {
    cloudProvider: 'AWS',
    path: 'aws',
    operation: 'AWSCredentials',
    name: 'AWS',
    body: schema.AwsCredentialsRequest,
    parts: awsParts,
  },
  {
    cloudProvider: 'SCW',
    path: 'scaleway',
    operation: 'ScalewayCredentials',
    name: 'Scaleway',
    body: schema.ScalewayCredentialsRequest,
    parts: scalewayParts,
  },
  {
    cloudProvider: 'GCP',
    path: 'gcp',
    operation: 'GcpCredentials',
    name: 'Google Cloud',
    body: schema.GcpCredentialsRequest,
    parts: gcpParts,
  },
  {
    cloudProvider: 'AZURE',
    path: 'azure',
    operation: 'AzureCredentials',
    name: 'Azure',
    body: schema.AzureCredentialsRequest,
    parts: azureParts,
  },
  {
    cloudProvider: 'ON_PREMISE',
    path: 'onPremise',
    operation: 'OnPremiseCredentials',
    name: 'on-premise',
    body: schema.OnPremiseCredentialsRequest,
    parts: onPremiseParts,
  },
];

function routesOf({ cloudProvider, path, operation, name, body, parts }: Provider): Route[] {
  const collection = `/organization/{organizationId}/${path}/credentials`;
  const target = credentialsTarget(cloudProvider);
  return [
    defineRoute({
      id: `list${operation}`,
      method: 'GET',
      path: collection,
      tag: TAG,
      summary: `List the ${name} credentials of an organization`,
      description: `Answers the stored ${name} credentials in creation order, never their secrets.`,
      target: organizationTarget,
      action: 'credentials.read',
      query: PageQuery,
      answer: { status: 200, body: ClusterCredentialsList },
      handler: ({ db, target: organization, query }) =>
        fetchPage(db, listCredentials(db, organization, cloudProvider), query, toCredentialsView),
    }),
    defineRoute({
      id: `create${operation}`,
      method: 'POST',
      path: collection,
      tag: TAG,
      summary: `Store ${name} credentials, without calling the provider`,
      description:
        'Secrets are encrypted and never answered. Names may repeat. Nothing checks here whether the provider accepts the credentials.',
      target: organizationTarget,
      action: 'credentials.edit',
      body,
      refusesUnknownFields: true,
      answer: { status: 201, body: ClusterCredentials },
      handler: (call) => {
        const input = call.body as schema.CredentialsInput;
        return createCredentials(call, call.target.organizationId, cloudProvider, input, parts(input));
      },
    }),
    defineRoute({
      id: `get${operation}`,
      method: 'GET',
      path: `${collection}/{credentialsId}`,
      tag: TAG,
      summary: `Get ${name} credentials`,
      description: `Answers the fields of the ${name} credentials that are not secret. Credentials of another provider are 404 here.`,
      target,
      action: 'credentials.read',
      answer: { status: 200, body: ClusterCredentials },
      readsOnlyTarget: true,
      handler: (call) => toCredentialsView(call.target),
    }),
    defineRoute({
      id: `edit${operation}`,
      method: 'PUT',
      path: `${collection}/{credentialsId}`,
      tag: TAG,
      summary: `Replace ${name} credentials`,
      description:
        'The body replaces everything, so that it must carry the secrets again. Clusters that use the credentials take over a new name.',
      target,
      action: 'credentials.edit',
      body,
      refusesUnknownFields: true,
      answer: { status: 200, body: ClusterCredentials },
      handler: (call) => {
        const input = call.body as schema.CredentialsInput;
        return editCredentials(call, call.target, input, parts(input));
      },
    }),
    defineRoute({
      id: `delete${operation}`,
      method: 'DELETE',
      path: `${collection}/{credentialsId}`,
      tag: TAG,
      summary: `Delete ${name} credentials that no cluster uses`,
      description: 'Removes the credentials and their secrets. 409 while a cluster names them.',
      target,
      action: 'credentials.edit',
      answer: { status: 204, body: null },
      errors: [409],
      handler: (call) => deleteCredentials(call, call.target),
    }),
  ];
}

/** Operations on the credentials of every provider. */
export const credentialsRoutes: Route[] = PROVIDERS.flatMap(routesOf);
