import * as regions from '#resources/cloud-provider/data/regions.ts';

/** Cloud providers with their regions. Logos are left to the client: this program serves no images. */
export const PROVIDERS = [
  { short_name: 'AWS', name: 'Amazon Web Services', regions: regions.AWS_REGIONS },
  { short_name: 'SCW', name: 'Scaleway', regions: regions.SCALEWAY_REGIONS },
  { short_name: 'GCP', name: 'Google Cloud', regions: regions.GCP_REGIONS },
  { short_name: 'AZURE', name: 'Microsoft Azure', regions: regions.AZURE_REGIONS },
  { short_name: 'ON_PREMISE', name: 'On-premise', regions: [] },
];
