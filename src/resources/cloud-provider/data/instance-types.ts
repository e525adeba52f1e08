/** Type of machine that a cloud provider rents out. */
export interface InstanceType {
  type: string;
  name: string;
  cpu: number;
  ram_in_gb: number;
  bandwidth_in_gbps: string;
  bandwidth_guarantee: string;
  architecture: 'AMD64' | 'ARM64';
  gpu_info?: { count: number; name: string; manufacturer: string; memory_in_mib: string };
  attributes: {
    instance_category: string;
    instance_generation: number;
    instance_family: string;
    instance_size: string;
    meets_resource_reqs: boolean;
  };
}

/** Smallest machine that a Kubernetes node needs for itself and for workloads. */
const NODE = { cpu: 2, ram_in_gb: 4 };

type Size = [size: string, cpu: number, ram_in_gb: number, bandwidth: string];

interface Family {
  family: string;
  category: string;
  generation: number;
  architecture?: 'ARM64';
  gpu?: { name: string; manufacturer: string; memoryMib: number; perSize: Record<string, number> };
  sizes: Size[];
}

/** Makes the rows of a family; `typeOf` joins family and size as the provider does. */
function typesOf(
  { family, category, generation, architecture, gpu, sizes }: Family,
  typeOf: (family: string, size: string) => string,
): InstanceType[] {
  return sizes.map(([size, cpu, ram_in_gb, bandwidth]) => {
    const type = typeOf(family, size);
    const count = gpu?.perSize[size];
    return {
      type,
      name: `${type.toUpperCase()} (${cpu}CPU - ${ram_in_gb}GB RAM)`,
      cpu,
      ram_in_gb,
      bandwidth_in_gbps: bandwidth,
      bandwidth_guarantee: bandwidth.startsWith('Up to') ? 'BURSTABLE' : 'GUARANTEED',
      architecture: architecture ?? 'AMD64',
      ...(gpu && count !== undefined
        ? {
            gpu_info: {
              count,
              name: gpu.name,
              manufacturer: gpu.manufacturer,
              memory_in_mib: String(gpu.memoryMib * count),
            },
          }
        : {}),
      attributes: {
        instance_category: category,
        instance_generation: generation,
        instance_family: family,
        instance_size: size,
        meets_resource_reqs: cpu >= NODE.cpu && ram_in_gb >= NODE.ram_in_gb,
      },
    };
  });
}

/** Sizes of AWS from `large` on: every step doubles processor and memory. */
const awsSizes = (ramPerCpu: number, bandwidth: (cpu: number) => string): Size[] =>
  (
    [
      ['large', 2],
      ['xlarge', 4],
      ['2xlarge', 8],
      ['4xlarge', 16],
      ['8xlarge', 32],
    ] as const
  ).map(([size, cpu]) => [size, cpu, cpu * ramPerCpu, bandwidth(cpu)]);

const sixth = (cpu: number): string => (cpu < 32 ? 'Up to 12.5' : '12.5');
const fifth = (cpu: number): string => (cpu < 32 ? 'Up to 10' : '10');

const burstable = (ramOfLarge: number): Size[] => [
  ['small', 2, ramOfLarge / 4, 'Up to 5'],
  ['medium', 2, ramOfLarge / 2, 'Up to 5'],
  ['large', 2, ramOfLarge, 'Up to 5'],
  ['xlarge', 4, ramOfLarge * 2, 'Up to 5'],
  ['2xlarge', 8, ramOfLarge * 4, 'Up to 5'],
];

const T4 = {
  name: 'T4',
  manufacturer: 'NVIDIA',
  memoryMib: 16_384,
  perSize: { xlarge: 1, '2xlarge': 1, '4xlarge': 1, '8xlarge': 1 },
};

export const AWS_INSTANCE_TYPES: InstanceType[] = (
  [
    { family: 't3', category: 't', generation: 3, sizes: burstable(8) },
    { family: 't3a', category: 't', generation: 3, sizes: burstable(8) },
    { family: 't4g', category: 't', generation: 4, architecture: 'ARM64', sizes: burstable(8) },
    { family: 'm5', category: 'm', generation: 5, sizes: awsSizes(4, fifth) },
    { family: 'm6i', category: 'm', generation: 6, sizes: awsSizes(4, sixth) },
    { family: 'm6g', category: 'm', generation: 6, architecture: 'ARM64', sizes: awsSizes(4, fifth) },
    { family: 'm7i', category: 'm', generation: 7, sizes: awsSizes(4, sixth) },
    { family: 'm7g', category: 'm', generation: 7, architecture: 'ARM64', sizes: awsSizes(4, sixth) },
    { family: 'c5', category: 'c', generation: 5, sizes: awsSizes(2, fifth).slice(0, 4) },
    { family: 'c6i', category: 'c', generation: 6, sizes: awsSizes(2, sixth) },
    { family: 'c6g', category: 'c', generation: 6, architecture: 'ARM64', sizes: awsSizes(2, fifth) },
    { family: 'r5', category: 'r', generation: 5, sizes: awsSizes(8, fifth) },
    { family: 'r6i', category: 'r', generation: 6, sizes: awsSizes(8, sixth) },
    { family: 'r6g', category: 'r', generation: 6, architecture: 'ARM64', sizes: awsSizes(8, fifth) },
    {
      family: 'g4dn',
      category: 'g',
      generation: 4,
      gpu: T4,
      sizes: [
        ['xlarge', 4, 16, 'Up to 25'],
        ['2xlarge', 8, 32, 'Up to 25'],
        ['4xlarge', 16, 64, 'Up to 25'],
        ['8xlarge', 32, 128, '50'],
      ],
    },
  ] satisfies Family[]
).flatMap((family) => typesOf(family, (name, size) => `${name}.${size}`));

export const SCALEWAY_INSTANCE_TYPES: InstanceType[] = (
  [
    {
      family: 'DEV1',
      category: 'DEV',
      generation: 1,
      sizes: [
        ['M', 3, 4, '0.3'],
        ['L', 4, 8, '0.4'],
        ['XL', 4, 12, '0.5'],
      ],
    },
    {
      family: 'PLAY2',
      category: 'PLAY',
      generation: 2,
      sizes: [
        ['NANO', 2, 8, '0.2'],
        ['MICRO', 4, 16, '0.4'],
      ],
    },
    {
      family: 'GP1',
      category: 'GP',
      generation: 1,
      sizes: [
        ['XS', 4, 16, '0.5'],
        ['S', 8, 32, '0.8'],
        ['M', 16, 64, '1.5'],
        ['L', 32, 128, '5'],
        ['XL', 48, 256, '10'],
      ],
    },
    {
      family: 'PRO2',
      category: 'PRO',
      generation: 2,
      sizes: [
        ['XXS', 2, 8, '0.35'],
        ['XS', 4, 16, '0.7'],
        ['S', 8, 32, '1.5'],
        ['M', 16, 64, '3'],
        ['L', 32, 128, '6'],
      ],
    },
  ] satisfies Family[]
).flatMap((family) => typesOf(family, (name, size) => `${name}-${size}`));

const standard = (ramPerCpu: number, cpus: number[], bandwidth: (cpu: number) => string): Size[] =>
  cpus.map((cpu) => [String(cpu), cpu, cpu * ramPerCpu, bandwidth(cpu)]);

export const GCP_INSTANCE_TYPES: InstanceType[] = (
  [
    {
      family: 'e2-standard',
      category: 'e',
      generation: 2,
      sizes: standard(4, [2, 4, 8, 16, 32], (cpu) => (cpu === 2 ? '4' : cpu === 4 ? '8' : '16')),
    },
    {
      family: 'e2-highmem',
      category: 'e',
      generation: 2,
      sizes: standard(8, [2, 4, 8, 16], (cpu) => (cpu === 2 ? '4' : cpu === 4 ? '8' : '16')),
    },
    {
      family: 'n2-standard',
      category: 'n',
      generation: 2,
      sizes: standard(4, [2, 4, 8, 16, 32], (cpu) => (cpu < 8 ? '10' : cpu < 16 ? '16' : '32')),
    },
    {
      family: 'n2-highmem',
      category: 'n',
      generation: 2,
      sizes: standard(8, [2, 4, 8, 16, 32], (cpu) => (cpu < 8 ? '10' : cpu < 16 ? '16' : '32')),
    },
    {
      family: 'c2-standard',
      category: 'c',
      generation: 2,
      sizes: standard(4, [4, 8, 16], (cpu) => (cpu === 4 ? '10' : cpu === 8 ? '16' : '32')),
    },
    {
      family: 't2a-standard',
      category: 't',
      generation: 2,
      architecture: 'ARM64',
      sizes: standard(4, [2, 4, 8, 16, 32], (cpu) => (cpu < 8 ? '10' : cpu < 16 ? '16' : '32')),
    },
  ] satisfies Family[]
).flatMap((family) => typesOf(family, (name, size) => `${name}-${size}`));

/** Azure writes the processors into the middle of the name: `Standard_D4s_v5`. */
const azureSizes = (ramPerCpu: number): Size[] =>
  standard(ramPerCpu, [2, 4, 8, 16, 32], (cpu) => (cpu < 32 ? '12.5' : '16'));

/** Small machines of the older family F have less network than those of the fifth generation. */
const azureComputeSizes = standard(2, [2, 4, 8, 16, 32], (cpu) =>
  cpu === 2 ? '5' : cpu === 4 ? '10' : cpu < 32 ? '12.5' : '16',
);

export const AZURE_INSTANCE_TYPES: InstanceType[] = (
  [
    { family: 'D#s_v5', category: 'D', generation: 5, sizes: azureSizes(4) },
    { family: 'D#ps_v5', category: 'D', generation: 5, architecture: 'ARM64', sizes: azureSizes(4) },
    { family: 'E#s_v5', category: 'E', generation: 5, sizes: azureSizes(8) },
    { family: 'F#s_v2', category: 'F', generation: 2, sizes: azureComputeSizes },
  ] satisfies Family[]
).flatMap((family) =>
  typesOf(family, (name, size) => `Standard_${name.replace('#', size)}`).map((type) => ({
    ...type,
    name: `${type.type} (${type.cpu}CPU - ${type.ram_in_gb}GB RAM)`,
    attributes: { ...type.attributes, instance_family: family.family.replace('#', '') },
  })),
);
