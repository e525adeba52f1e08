import type { Route } from '#platform/http/route.ts';
import { deploymentRuleRoutes } from '#resources/deployment-rule/index.ts';
import { deploymentStageRoutes } from '#resources/deployment-stage/index.ts';
import { clusterNeeds } from '#app/clusters.ts';
import { documentRoute } from '#services/api-document/route.ts';
import { noImages } from '#services/images/registry-images.ts';
import { noFolders, noRepositories } from '#services/sources/repository-reader.ts';
import { noRuntime } from '#runtimes/no-runtime.ts';
import { clusterRoutes, type ClusterNeeds } from '#resources/cluster/index.ts';
import { alertReceiverRoutes } from '#resources/alert-receiver/index.ts';
import { alertRuleRoutes } from '#resources/alert-rule/index.ts';
import { billingRoutes } from '#resources/billing/index.ts';
import { blueprintRoutes } from '#resources/blueprint/index.ts';
import { cloudProviderRoutes } from '#resources/cloud-provider/index.ts';
import { clusterOperatorRoutes } from '#resources/cluster-operator/index.ts';
import { enterpriseConnectionRoutes } from '#resources/enterprise-connection/index.ts';
import { githubAppRoutes } from '#resources/github-app/index.ts';
import { outgoingAddressRoutes } from '#resources/outgoing-address/index.ts';
import { platformConfigurationRoutes } from '#resources/platform-configuration/index.ts';
import { referralRoutes } from '#resources/referral/index.ts';
import { accountRoutes } from '#resources/account/index.ts';
import { argoCdRoutes } from '#resources/argo-cd/index.ts';
import { apiTokenRoutes } from '#resources/api-token/index.ts';
import { credentialsRoutes, listCredentialsWithClusters } from '#resources/credentials/index.ts';
import { environmentRoutes } from '#resources/environment/index.ts';
import { gitTokenRoutes } from '#resources/git-token/index.ts';
import { mcpServerRoutes } from '#resources/mcp-server/index.ts';
import { helmRepositoryRoutes } from '#resources/helm-repository/index.ts';
import { metadataGroupRoutes } from '#resources/metadata-group/index.ts';
import { memberRoutes } from '#resources/member/index.ts';
import { organizationRoutes, type OrganizationRoutesNeeds } from '#resources/organization/index.ts';
import { projectRoutes } from '#resources/project/index.ts';
import { registryAccess, registryRoutes } from '#resources/registry/index.ts';
import { roleRoutes } from '#resources/role/index.ts';
import { secretManagerAccessRoutes } from '#resources/secret-manager-access/index.ts';
import { signInRoutes } from '#resources/sign-in/index.ts';
import { signUpRoutes } from '#resources/sign-up/index.ts';
import { eventRoutes } from '#resources/event/index.ts';
import { eventStreamRoutes } from '#resources/event-stream/index.ts';
import { noStreams } from '#platform/events/stream.ts';
import { webhookRoutes } from '#resources/webhook/index.ts';
import { deleteProject } from '#services/capabilities/environment/actions/delete.ts';
import { checkModeChange } from '#services/capabilities/environment/clone/index.ts';
import { createResolver } from '#platform/dns/resolver.ts';
import { forgetApps } from '#services/kinds/argocd-app/index.ts';
import { gitRepositoryRoutes } from '#services/git-repository/index.ts';
import { KINDS, mountServices } from '#services/mount.ts';
import { terraformRepositoryRoutes } from '#services/terraform-repository/index.ts';
import type { ServiceNeeds } from '#services/service/needs.ts';

/** Every endpoint of the program. */
export function allRoutes(needs: Partial<ServiceNeeds & ClusterNeeds & OrganizationRoutesNeeds> = {}): Route[] {
  const services: ServiceNeeds = {
    resolver: createResolver(),
    repositories: noRepositories,
    storeFolder: noFolders,
    images: noImages,
    streams: noStreams,
    machineId: null,
    runtimeOf: noRuntime,
    terraformPrograms: async () => [],
    findRegistry: registryAccess,
    ...needs,
  };
  const routes: Route[] = [
    ...accountRoutes,
    ...signInRoutes,
    ...signUpRoutes,
    ...referralRoutes,
    ...outgoingAddressRoutes,
    ...organizationRoutes({ listCredentials: listCredentialsWithClusters, ...needs }),
    ...billingRoutes,
    ...cloudProviderRoutes,
    ...credentialsRoutes,
    ...memberRoutes,
    ...enterpriseConnectionRoutes,
    ...roleRoutes,
    ...apiTokenRoutes,
    ...gitTokenRoutes,
    ...githubAppRoutes,
    ...mcpServerRoutes,
    ...registryRoutes,
    ...gitRepositoryRoutes(services.repositories),
    ...helmRepositoryRoutes,
    ...metadataGroupRoutes,
    ...terraformRepositoryRoutes(services.repositories),
    ...projectRoutes({ deleteProject }),
    ...environmentRoutes({
      checkModeChange: (context, environment, mode) => checkModeChange(context, KINDS, environment, mode),
    }),
    ...deploymentStageRoutes,
    ...deploymentRuleRoutes,
    ...eventRoutes,
    ...eventStreamRoutes(services.streams),
    ...webhookRoutes,
    ...alertReceiverRoutes,
    ...alertRuleRoutes,
    ...clusterRoutes({ ...clusterNeeds(), ...needs }),
    ...clusterOperatorRoutes,
    ...platformConfigurationRoutes,
    ...argoCdRoutes({ forgetApps }),
    ...secretManagerAccessRoutes,
    ...blueprintRoutes,
    ...mountServices(services),
    documentRoute(() => routes),
  ];
  return routes;
}
