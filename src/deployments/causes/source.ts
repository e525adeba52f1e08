/** Causes for which a commit, chart or image cannot be had. */
import { causesOf } from '#deployments/causes/cause.ts';

export const REPOSITORY_CAUSES = causesOf(['SOURCE_UNAVAILABLE'], {
  GIT_ACCESS: {
    summary: 'The git server does not let the service read the repository.',
    fix: 'Give the service a git token that may read this repository and has not expired.',
    message: /cannot be read without credentials|does not accept the git token|does not let us in over ssh/,
  },
  REPOSITORY_MISSING: {
    summary: 'There is no repository at the URL, or it is hidden from those without access.',
    fix: 'Check the URL; a private repository needs a git token.',
    message: /There is no repository at |is not a git repository\./,
  },
  BRANCH_MISSING: {
    summary: 'The repository has no branch or tag of the name that the service is configured with.',
    fix: 'Set the branch to one that the message lists, or push the branch.',
    message: /has no branch or tag /,
  },
  COMMIT_MISSING: {
    summary: 'The commit is not in the repository, for example since a force-push.',
    fix: 'Deploy a commit that the branch has, or the newest one.',
    message: /Commit \S+ is not in /,
  },
  GIT_FOLDER_MISSING: {
    summary: 'The commit does not have the folder that the service is deployed from.',
    fix: 'Correct the root path of the service, or commit the folder.',
    message: /is not a folder of .* in that commit\./,
  },
  GIT_LFS: {
    summary: 'The repository keeps files in Git LFS that its server did not give.',
    fix: 'Check that the files were pushed to the LFS server and that the git token may read them.',
    message: /keeps files in Git LFS, and /,
  },
  SUBMODULE: {
    summary: 'A submodule of the commit may not be fetched.',
    fix: 'Use a submodule that the git token may read, over https, or do without it.',
    message: /submodule/i,
  },
  GIT_HOST_UNKNOWN: {
    summary: 'The name of the git server is not known in the DNS of the machine.',
    fix: 'Correct the host in the URL, or the name servers of the machine.',
    message: /Could not resolve host/i,
  },
  GIT_UNREACHABLE: {
    summary: 'The git server did not answer.',
    fix: 'Check that the server runs and that the machine reaches it; deploy again then.',
    message: /cannot be reached: |did not answer within|was not read within/,
  },
  UPLOAD_GONE: {
    summary: 'The uploaded folder that is to be deployed is no longer kept.',
    fix: 'Upload the folder again.',
    message: /The uploaded folder .* is no longer kept/,
  },
});

export const IMAGE_CAUSES = causesOf(['SOURCE_UNAVAILABLE', 'BUILD_FAILED', 'NOT_READY', 'FAILED'], {
  REGISTRY_RATE_LIMIT: {
    summary: 'The registry refuses further pulls for a while.',
    fix: 'Log in with a container registry of your own, use a mirror, or wait.',
    message: /toomanyrequests|too many requests|pull rate limit|\b429\b.*registry/i,
  },
  REGISTRY_ACCESS: {
    summary: 'The registry does not let the service pull the image.',
    fix: 'Give the service a container registry whose user may pull this image, and check the name of the image.',
    message:
      /does not let these credentials pull|wants credentials for|pull access denied|401 Unauthorized|403 Forbidden/,
  },
  IMAGE_PLATFORM: {
    summary: 'The image was not made for the processor of the machine.',
    fix: 'Build the image for the platform of the cluster, or for several platforms.',
    message: /no matching manifest for|does not match the (?:specified|detected host) platform/i,
  },
  IMAGE_MISSING: {
    summary: 'The registry has no image of this name and tag.',
    fix: 'Correct the name or the tag, or push the image.',
    message:
      /does not have the image |manifest unknown|manifest for .* not found|InvalidImageName|: not found\. Last lines/,
  },
  IMAGE_REMOVED: {
    summary: 'The image that was built for the service is no longer there.',
    fix: 'Deploy the service again: the image is built anew.',
    message: /is not there any more: deploy the service again|is not on this machine any more/,
  },
  REGISTRY_UNREACHABLE: {
    summary: 'The registry of the image did not answer.',
    fix: 'Check the address of the registry, the network and the certificate.',
    message: /The registry .* cannot be reached|dial tcp .*(?:refused|timeout|no such host)/,
  },
});
