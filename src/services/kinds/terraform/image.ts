import { MACHINE_RUNTIME } from '#runtimes/runtime.ts';
import { FOLDER } from '#services/kinds/terraform/run-files.ts';
import type { TerraformSpec } from '#services/kinds/terraform/spec.ts';
import { KNOWN_VERSIONS } from '#services/kinds/terraform/versions.ts';

/** Names of the programs' images, without their tags (settings). */
export interface ProgramImages {
  terraform: string;
  openTofu: string;
}

export const DOCKERFILE = '.quarterdeck.Dockerfile';

/** Base image for OpenTofu, whose program is copied into it: OpenTofu's own images refuse to be built upon. */
const BASE = 'docker.io/library/alpine:3.22';

/** Returns the version of the image: the named one, else the newest known one. */
function versionOf(spec: TerraformSpec): string {
  const known = KNOWN_VERSIONS.filter(({ engine }) => engine === spec.engine).map(({ version }) => version);
  const { explicit_version: wanted } = spec.provider_version;
  if (wanted === '') return known[0]!;
  return /^\d+\.\d+$/.test(wanted) ? (known.find((version) => version.startsWith(`${wanted}.`)) ?? wanted) : wanted;
}

/**
 * Makes the Dockerfile of a service: Terraform's own image with the service's fragment and the repository in it. On a host cluster FROM
 * stands for the machine, whose program is used.
 */
export function dockerfileOf(spec: TerraformSpec, runtime: string, images: ProgramImages, fragment: string): string {
  const version = versionOf(spec);
  const from =
    spec.engine === 'TERRAFORM'
      ? [`FROM ${images.terraform}:${version}`]
      : runtime !== MACHINE_RUNTIME
        ? [
            `FROM ${images.openTofu}:${version}-minimal AS program`,
            `FROM ${BASE}`,
            'RUN apk add --no-cache ca-certificates git openssh-client',
            'COPY --from=program /usr/local/bin/tofu /usr/local/bin/tofu',
          ]
        : [`FROM ${images.openTofu}:${version}`];
  const added = fragment.trim();
  return [...from, ...(added ? [added] : []), `WORKDIR ${FOLDER}`, `COPY . ${FOLDER}/source/`, ''].join('\n');
}
