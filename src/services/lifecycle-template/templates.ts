/** Template of a lifecycle job: its Dockerfile, the commands of its events, and the variables that it needs. */
export interface LifecycleTemplate {
  id: string;
  name: string;
  description: string;
  sourceUrl: string;
  cloud_provider: 'AWS' | 'SCW' | 'GCP' | 'ON_PREMISE' | 'AZURE';
  events: { name: 'start' | 'stop' | 'delete'; entrypoint?: string; command: string[] }[];
  max_duration_in_sec: number;
  resources: { cpu_milli: number; ram_mib: number };
  variables: TemplateVariable[];
  dockerfile: string;
}

export interface TemplateVariable {
  name: string;
  description: string;
  default: string;
  is_secret: boolean;
  file?: { path: string; enable_interpolation: boolean };
}

const variable = (name: string, description: string, fallback = ''): TemplateVariable => ({
  name,
  description,
  default: fallback,
  is_secret: false,
});
const secret = (name: string, description: string): TemplateVariable => ({
  ...variable(name, description),
  is_secret: true,
});

/** Makes an instruction that writes a program, line by line, so that the builder need not support here-documents. */
function writeProgram(path: string, lines: string[]): string {
  const quoted = lines.map((line) => `  '${line.replaceAll("'", `'"'"'`)}'`);
  return `RUN printf '%s\\n' \\\n${quoted.join(' \\\n')} \\\n  > ${path} && chmod 755 ${path}`;
}

const PROGRAM = '/usr/local/bin/lifecycle';
const UNKNOWN = '*) echo "Unknown event: $1" >&2; exit 2 ;;';

const dockerfile = (image: string, steps: string[], program: string[]): string =>
  [
    `FROM ${image}`,
    ...steps,
    'WORKDIR /data',
    'COPY . .',
    writeProgram(PROGRAM, ['#!/bin/sh', 'set -eu', ...program]),
    `ENTRYPOINT ["${PROGRAM}"]`,
    'CMD ["start"]',
    '',
  ].join('\n');

const event = (name: 'start' | 'stop' | 'delete') => ({ name, command: [name] });
const AWS_ACCESS = [
  variable('AWS_DEFAULT_REGION', 'Region of the stack.', 'eu-west-3'),
  variable('AWS_ACCESS_KEY_ID', 'Key of an account that may make the stack.'),
  secret('AWS_SECRET_ACCESS_KEY', 'Secret of that key.'),
];

/** Returns the templates, whose outputs go to the file. Ids of templates never change. */
export const templatesFor = (outputPath: string): LifecycleTemplate[] => [
  {
    id: '5d1f0f5e-7c0c-4a53-9a3f-0d8c7b1f2e01',
    name: 'Script',
    description:
      'Runs start.sh, stop.sh and delete.sh of the repository at the events of the same names. Events without a script do nothing.',
    sourceUrl: 'https://docs.docker.com/reference/dockerfile/',
    cloud_provider: 'ON_PREMISE',
    events: [event('start'), event('stop'), event('delete')],
    max_duration_in_sec: 600,
    resources: { cpu_milli: 250, ram_mib: 256 },
    variables: [variable('SCRIPTS_PATH', 'Folder of the scripts in the repository.', '.')],
    dockerfile: dockerfile(
      'alpine:3.22',
      ['RUN apk add --no-cache bash curl jq'],
      [
        'cd "/data/${SCRIPTS_PATH:-.}"',
        `mkdir -p "$(dirname ${outputPath})"`,
        `export OUTPUT_PATH=${outputPath}`,
        'case "$1" in',
        '  start|stop|delete) if [ -f "$1.sh" ]; then exec bash "$1.sh"; else echo "There is no $1.sh: nothing to do."; fi ;;',
        `  ${UNKNOWN}`,
        'esac',
      ],
    ),
  },
  {
    id: '5d1f0f5e-7c0c-4a53-9a3f-0d8c7b1f2e02',
    name: 'PostgreSQL seed',
    description: 'Runs a file of SQL of the repository in a PostgreSQL database when the environment is deployed.',
    sourceUrl: 'https://www.postgresql.org/docs/current/app-psql.html',
    cloud_provider: 'ON_PREMISE',
    events: [event('start')],
    max_duration_in_sec: 1800,
    resources: { cpu_milli: 250, ram_mib: 256 },
    variables: [
      secret(
        'DATABASE_URL',
        'Address of the database, with its account: make it an alias of the one of your database.',
      ),
      variable(
        'SEED_PATH',
        'File in the repository. It is run at each deployment: write it so that it may be.',
        'seed.sql',
      ),
    ],
    dockerfile: dockerfile(
      'postgres:17-alpine',
      [],
      [
        'case "$1" in',
        '  start) exec psql --dbname="$DATABASE_URL" --set=ON_ERROR_STOP=1 --single-transaction --file="/data/${SEED_PATH:-seed.sql}" ;;',
        `  ${UNKNOWN}`,
        'esac',
      ],
    ),
  },
  {
    id: '5d1f0f5e-7c0c-4a53-9a3f-0d8c7b1f2e03',
    name: 'Terraform',
    description:
      'Applies the Terraform files of the repository at the start and destroys what they made at the delete. The state is kept in a PostgreSQL database unless the files name a backend. The outputs become variables of the environment.',
    sourceUrl: 'https://developer.hashicorp.com/terraform/language/backend/pg',
    cloud_provider: 'ON_PREMISE',
    events: [event('start'), event('delete')],
    max_duration_in_sec: 3600,
    resources: { cpu_milli: 500, ram_mib: 1024 },
    variables: [
      variable('TERRAFORM_PATH', 'Folder of the files in the repository.', '.'),
      secret(
        'PG_CONN_STR',
        'Address of the PostgreSQL database for the state; not needed where the files name a backend.',
      ),
      variable('PG_SCHEMA_NAME', 'Schema of that database, one for each job.', 'terraform'),
      {
        ...variable(
          'TERRAFORM_VARIABLES',
          "Values of the files' variables, as in a file of the kind .tfvars.json.",
          '{}',
        ),
        file: { path: '/data/lifecycle.auto.tfvars.json', enable_interpolation: true },
      },
    ],
    dockerfile: dockerfile(
      'hashicorp/terraform:1.13',
      [],
      [
        'cd "/data/${TERRAFORM_PATH:-.}"',
        'export TF_IN_AUTOMATION=1 TF_INPUT=0',
        'values=""',
        'if [ -f /data/lifecycle.auto.tfvars.json ]; then values=-var-file=/data/lifecycle.auto.tfvars.json; fi',
        "if ! grep -Eqs '^[[:space:]]*(backend|cloud)[[:space:]]' ./*.tf; then",
        '  printf "terraform {\\n  backend \\"pg\\" {}\\n}\\n" > lifecycle_backend.tf',
        'fi',
        'terraform init -no-color',
        'case "$1" in',
        '  start)',
        '    terraform apply -no-color -auto-approve $values',
        `    mkdir -p "$(dirname ${outputPath})"`,
        `    terraform output -json > ${outputPath} ;;`,
        '  delete) terraform destroy -no-color -auto-approve $values ;;',
        `  ${UNKNOWN}`,
        'esac',
      ],
    ),
  },
  {
    id: '5d1f0f5e-7c0c-4a53-9a3f-0d8c7b1f2e04',
    name: 'CloudFormation',
    description:
      'Makes or updates a stack of AWS CloudFormation by the template of the repository at the start, and deletes it at the delete. The outputs of the stack become variables of the environment.',
    sourceUrl: 'https://docs.aws.amazon.com/cli/latest/reference/cloudformation/deploy/',
    cloud_provider: 'AWS',
    events: [event('start'), event('delete')],
    max_duration_in_sec: 3600,
    resources: { cpu_milli: 500, ram_mib: 512 },
    variables: [
      ...AWS_ACCESS,
      variable('STACK_NAME', 'Name of the stack, one for each environment.'),
      variable('TEMPLATE_PATH', 'Template in the repository.', 'template.yaml'),
      {
        ...variable(
          'STACK_PARAMETERS',
          'Parameters of the template, as a JSON list of texts such as "Key=Value".',
          '[]',
        ),
        file: { path: '/data/lifecycle-parameters.json', enable_interpolation: true },
      },
    ],
    dockerfile: dockerfile(
      'public.ecr.aws/aws-cli/aws-cli:2.31.0',
      ['RUN yum install -y jq && yum clean all'],
      [
        'parameters=""',
        'if [ "$(jq length /data/lifecycle-parameters.json 2>/dev/null || echo 0)" != 0 ]; then',
        '  parameters="--parameter-overrides file:///data/lifecycle-parameters.json"',
        'fi',
        'case "$1" in',
        '  start)',
        '    aws cloudformation deploy --stack-name "$STACK_NAME" --template-file "/data/${TEMPLATE_PATH:-template.yaml}" \\',
        '      --capabilities CAPABILITY_NAMED_IAM CAPABILITY_AUTO_EXPAND --no-fail-on-empty-changeset $parameters',
        `    mkdir -p "$(dirname ${outputPath})"`,
        '    aws cloudformation describe-stacks --stack-name "$STACK_NAME" --query "Stacks[0].Outputs" --output json \\',
        `      | jq '(. // []) | map({(.OutputKey): {value: .OutputValue, description: .Description}}) | add // {}' > ${outputPath} ;;`,
        '  delete)',
        '    aws cloudformation delete-stack --stack-name "$STACK_NAME"',
        '    aws cloudformation wait stack-delete-complete --stack-name "$STACK_NAME" ;;',
        `  ${UNKNOWN}`,
        'esac',
      ],
    ),
  },
];
