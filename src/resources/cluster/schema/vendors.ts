import { OneOf } from '#platform/http/schema.ts';

/** Clouds that the interface knows. */
export const CLOUDS = ['AWS', 'SCW', 'GCP', 'DO', 'AZURE', 'OVH', 'CIVO', 'HETZNER', 'ORACLE', 'IBM'] as const;

/** Cloud of a cluster, or a machine of one's own. */
export const CloudVendor = OneOf([...CLOUDS, 'ON_PREMISE']);
