/** Engines of databases that AWS manages (RDS, DocumentDB, ElastiCache). */
export const AWS_DATABASE_TYPES = ['POSTGRESQL', 'MYSQL', 'MONGODB', 'REDIS'] as const;

/** Engines of databases that Scaleway manages. */
export const SCALEWAY_DATABASE_TYPES = ['POSTGRESQL', 'MYSQL', 'REDIS'] as const;

const RDS = [
  'db.t3.small',
  'db.t3.medium',
  'db.t3.large',
  'db.m5.large',
  'db.m5.xlarge',
  'db.r5.large',
  'db.r5.xlarge',
];

/** Types of machines that each engine of AWS runs on. They are the same in all regions listed here. */
export const AWS_DATABASE_INSTANCE_TYPES: Record<(typeof AWS_DATABASE_TYPES)[number], string[]> = {
  POSTGRESQL: ['db.t3.micro', ...RDS],
  MYSQL: ['db.t3.micro', ...RDS],
  MONGODB: ['db.t3.medium', 'db.r5.large', 'db.r5.xlarge', 'db.r5.2xlarge'],
  REDIS: ['cache.t3.micro', 'cache.t3.small', 'cache.t3.medium', 'cache.m5.large', 'cache.r5.large'],
};
