/** Feature of a cluster that a provider offers: its name is the `id` that a cluster is created with. */
interface Offer {
  id: 'VPC_SUBNET' | 'STATIC_IP' | 'NAT_GATEWAY' | 'EXISTING_VPC' | 'KARPENTER' | 'GKE_KMS_KEY';
  title: string;
  description: string;
  /** Value without a choice, where the feature is a text or a switch. */
  value?: string | boolean;
  isPaid?: boolean;
  accepted?: (string | boolean)[];
}

const STATIC_IP: Offer = {
  id: 'STATIC_IP',
  title: 'Static IP',
  description: 'Outgoing connections of the cluster come from addresses that stay.',
  value: false,
  isPaid: true,
  accepted: [true, false],
};

const toView = ({ id, title, description, value, isPaid = false, accepted }: Offer) => ({
  id,
  title,
  description,
  cost_per_month_in_cents: null,
  cost_per_month: null,
  currency_code: null,
  is_cloud_provider_paying_feature: isPaid,
  cloud_provider_feature_documentation: null,
  is_qovery_paying_feature: false,
  qovery_feature_documentation: null,
  ...(typeof value === 'boolean' ? { value_type: 'BOOLEAN' as const } : {}),
  ...(value === undefined ? {} : { value_object: { type: typeof value === 'string' ? 'STRING' : 'BOOLEAN', value } }),
  is_value_updatable: false,
  ...(accepted ? { accepted_values: accepted } : {}),
});

export const AWS_FEATURES = [
  {
    id: 'VPC_SUBNET',
    title: 'Virtual Private Cloud (VPC)',
    description: 'Range of addresses of the VPC in which the cluster is made.',
    value: '10.0.0.0/16',
  } satisfies Offer,
  STATIC_IP,
  {
    id: 'EXISTING_VPC',
    title: 'Existing VPC',
    description: 'The cluster lives in a VPC of your own, whose subnets the value names.',
  } satisfies Offer,
  {
    id: 'KARPENTER',
    title: 'Karpenter',
    description: 'Nodes come and go with the load, of the types that the value allows.',
  } satisfies Offer,
].map(toView);

export const SCALEWAY_FEATURES = [
  STATIC_IP,
  {
    id: 'NAT_GATEWAY',
    title: 'NAT gateway',
    description:
      'Nodes without public addresses reach the internet through a gateway of the type that the value names.',
    isPaid: true,
  } satisfies Offer,
].map(toView);

export const GCP_FEATURES = [
  STATIC_IP,
  {
    id: 'EXISTING_VPC',
    title: 'Existing VPC',
    description: 'The cluster lives in a VPC of your own, whose subnetwork and ranges the value names.',
  } satisfies Offer,
  {
    id: 'NAT_GATEWAY',
    title: 'Cloud NAT',
    description: 'Nodes without public addresses reach the internet through Cloud NAT.',
    isPaid: true,
  } satisfies Offer,
  {
    id: 'GKE_KMS_KEY',
    title: 'Encryption key',
    description: 'Secrets of the cluster are encrypted with the key of Cloud KMS that the value names.',
    value: '',
  } satisfies Offer,
].map(toView);

export const AZURE_FEATURES = [STATIC_IP].map(toView);
