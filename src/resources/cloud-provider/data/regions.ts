/** Month up to which new regions were taken into the tables: those that a provider opened later, and rare ones, are missing. */
export const REGIONS_AS_OF = 'July 2024';

/** Region of a cloud provider: name, code and name of the country, city, zones, and whether it has ARM machines. */
export interface Region {
  name: string;
  country_code: string;
  country: string;
  city: string;
  arm_supported: boolean;
  zones: string[];
}

type Row = [name: string, country_code: string, country: string, city: string];

const zonesOf = (name: string, separator: string, letters: string): string[] =>
  [...letters].map((letter) => `${name}${separator}${letter}`);

const regionsOf = (rows: Row[], isArm: (name: string) => boolean, zones: (name: string) => string[]): Region[] =>
  rows.map(([name, country_code, country, city]) => ({
    name,
    country_code,
    country,
    city,
    arm_supported: isArm(name),
    zones: zones(name),
  }));

/** Common regions of AWS, of those that every account has or can opt in to. */
export const AWS_REGIONS = regionsOf(
  [
    ['us-east-1', 'US', 'United States', 'N. Virginia'],
    ['us-east-2', 'US', 'United States', 'Ohio'],
    ['us-west-1', 'US', 'United States', 'N. California'],
    ['us-west-2', 'US', 'United States', 'Oregon'],
    ['ca-central-1', 'CA', 'Canada', 'Montreal'],
    ['ca-west-1', 'CA', 'Canada', 'Calgary'],
    ['sa-east-1', 'BR', 'Brazil', 'Sao Paulo'],
    ['eu-west-1', 'IE', 'Ireland', 'Dublin'],
    ['eu-west-2', 'GB', 'United Kingdom', 'London'],
    ['eu-west-3', 'FR', 'France', 'Paris'],
    ['eu-central-1', 'DE', 'Germany', 'Frankfurt'],
    ['eu-central-2', 'CH', 'Switzerland', 'Zurich'],
    ['eu-north-1', 'SE', 'Sweden', 'Stockholm'],
    ['eu-south-1', 'IT', 'Italy', 'Milan'],
    ['eu-south-2', 'ES', 'Spain', 'Zaragoza'],
    ['af-south-1', 'ZA', 'South Africa', 'Cape Town'],
    ['me-south-1', 'BH', 'Bahrain', 'Manama'],
    ['me-central-1', 'AE', 'United Arab Emirates', 'Dubai'],
    ['il-central-1', 'IL', 'Israel', 'Tel Aviv'],
    ['ap-south-1', 'IN', 'India', 'Mumbai'],
    ['ap-south-2', 'IN', 'India', 'Hyderabad'],
    ['ap-southeast-1', 'SG', 'Singapore', 'Singapore'],
    ['ap-southeast-2', 'AU', 'Australia', 'Sydney'],
    ['ap-southeast-3', 'ID', 'Indonesia', 'Jakarta'],
    ['ap-southeast-4', 'AU', 'Australia', 'Melbourne'],
    ['ap-northeast-1', 'JP', 'Japan', 'Tokyo'],
    ['ap-northeast-2', 'KR', 'South Korea', 'Seoul'],
    ['ap-northeast-3', 'JP', 'Japan', 'Osaka'],
    ['ap-east-1', 'HK', 'Hong Kong', 'Hong Kong'],
  ],
  () => true,
  (name) => zonesOf(name, '', { 'us-west-1': 'ac', 'ca-central-1': 'abd', 'ap-northeast-1': 'acd' }[name] ?? 'abc'),
);

/** Regions of Scaleway, whose zones have numbers. */
export const SCALEWAY_REGIONS = regionsOf(
  [
    ['fr-par', 'FR', 'France', 'Paris'],
    ['nl-ams', 'NL', 'Netherlands', 'Amsterdam'],
    ['pl-waw', 'PL', 'Poland', 'Warsaw'],
  ],
  (name) => name === 'fr-par',
  (name) => zonesOf(name, '-', '123'),
);

/** Common regions of Google Cloud. */
export const GCP_REGIONS = regionsOf(
  [
    ['us-central1', 'US', 'United States', 'Council Bluffs'],
    ['us-east1', 'US', 'United States', 'Moncks Corner'],
    ['us-east4', 'US', 'United States', 'Ashburn'],
    ['us-west1', 'US', 'United States', 'The Dalles'],
    ['us-west2', 'US', 'United States', 'Los Angeles'],
    ['northamerica-northeast1', 'CA', 'Canada', 'Montreal'],
    ['southamerica-east1', 'BR', 'Brazil', 'Sao Paulo'],
    ['europe-west1', 'BE', 'Belgium', 'St. Ghislain'],
    ['europe-west2', 'GB', 'United Kingdom', 'London'],
    ['europe-west3', 'DE', 'Germany', 'Frankfurt'],
    ['europe-west4', 'NL', 'Netherlands', 'Eemshaven'],
    ['europe-west6', 'CH', 'Switzerland', 'Zurich'],
    ['europe-west9', 'FR', 'France', 'Paris'],
    ['europe-north1', 'FI', 'Finland', 'Hamina'],
    ['asia-south1', 'IN', 'India', 'Mumbai'],
    ['asia-southeast1', 'SG', 'Singapore', 'Singapore'],
    ['asia-northeast1', 'JP', 'Japan', 'Tokyo'],
    ['asia-east1', 'TW', 'Taiwan', 'Changhua County'],
    ['australia-southeast1', 'AU', 'Australia', 'Sydney'],
  ],
  (name) => ['us-central1', 'europe-west4', 'asia-southeast1'].includes(name),
  (name) => zonesOf(name, '-', { 'us-east1': 'bcd', 'europe-west1': 'bcd' }[name] ?? 'abc'),
);

/** Common regions of Azure, of those with three availability zones. */
export const AZURE_REGIONS = regionsOf(
  [
    ['eastus', 'US', 'United States', 'Virginia'],
    ['eastus2', 'US', 'United States', 'Virginia'],
    ['centralus', 'US', 'United States', 'Iowa'],
    ['southcentralus', 'US', 'United States', 'Texas'],
    ['westus2', 'US', 'United States', 'Washington'],
    ['westus3', 'US', 'United States', 'Arizona'],
    ['canadacentral', 'CA', 'Canada', 'Toronto'],
    ['brazilsouth', 'BR', 'Brazil', 'Sao Paulo'],
    ['northeurope', 'IE', 'Ireland', 'Dublin'],
    ['westeurope', 'NL', 'Netherlands', 'Amsterdam'],
    ['uksouth', 'GB', 'United Kingdom', 'London'],
    ['francecentral', 'FR', 'France', 'Paris'],
    ['germanywestcentral', 'DE', 'Germany', 'Frankfurt'],
    ['switzerlandnorth', 'CH', 'Switzerland', 'Zurich'],
    ['swedencentral', 'SE', 'Sweden', 'Gavle'],
    ['norwayeast', 'NO', 'Norway', 'Oslo'],
    ['centralindia', 'IN', 'India', 'Pune'],
    ['southeastasia', 'SG', 'Singapore', 'Singapore'],
    ['japaneast', 'JP', 'Japan', 'Tokyo'],
    ['koreacentral', 'KR', 'South Korea', 'Seoul'],
    ['australiaeast', 'AU', 'Australia', 'Sydney'],
  ],
  () => true,
  (name) => zonesOf(name, '-', '123'),
);
