/** Causes for which an image cannot be built. */
import { causesOf } from '#deployments/causes/cause.ts';

/** Causes that a line of the build shows. */
export const BUILD_OUTPUT_CAUSES = causesOf(['BUILD_FAILED'], {
  MACHINE_PROGRAM_MISSING: {
    summary: 'The machine of the cluster lacks a program with which projects of this language are built or run.',
    fix: 'Have the operator install it on the machine, or deploy to a cluster with Docker or Kubernetes.',
    output: /This machine has no \S/,
  },
  LOCK_FILE: {
    summary: 'The lock file of the packages is missing or does not fit to what the project asks for.',
    fix: 'Install the packages where you develop, and commit the lock file.',
    output:
      /can only install (?:packages when|with an existing)|lock ?file .*(?:not up.to.date|out of (?:date|sync)|needs to be updated)|OUTDATED_LOCKFILE|frozen.?lockfile|missing go\.sum entry|updates to go\.mod needed|pyproject\.toml changed significantly/i,
  },
  PACKAGE_ACCESS: {
    summary: 'The registry of packages wants credentials, or refuses those that the build has.',
    fix: 'Give the build the token of the registry as a secret, and check what it may read.',
    output: /\bE40[13]\b|npm (?:error|ERR!) 40[13]\b|ENEEDAUTH|HTTP error 40[13]|returned error: 40[13]/,
  },
  PACKAGE_MISSING: {
    summary: 'A package, or the wanted version of it, does not exist.',
    fix: 'Correct the name or the version of the package that the lines show.',
    output:
      /\bE404\b|\bETARGET\b|No matching (?:distribution|version|package)|Unable to locate package|has no installation candidate|Could not find gem|unknown revision|no matching package named/i,
  },
  PACKAGE_INTEGRITY: {
    summary: 'A downloaded package is not the one that the lock file names.',
    fix: 'Install the packages anew where you develop and commit the lock file; if it comes back, ask who serves the package.',
    output: /\bEINTEGRITY\b|checksum mismatch|hashes? (?:do|did|does) not match/i,
  },
  PACKAGE_CONFLICT: {
    summary: 'Packages want versions of another package that exclude each other.',
    fix: 'Choose versions that go together and commit the lock file.',
    output: /\bERESOLVE\b|ResolutionImpossible|conflicting dependencies|version solving failed/i,
  },
  SCRIPT_MISSING: {
    summary: 'The build calls a script that the project does not have.',
    fix: 'Add the script to package.json, or correct its name in the Dockerfile.',
    output: /Missing script:|Command "[^"]+" not found\.|No rule to make target/i,
  },
  TOOL_VERSION: {
    summary: 'The project needs another version of the language or of its tools than the image has.',
    fix: 'Take a base image with the version that the lines name.',
    output:
      /\bEBADENGINE\b|requires go >=|requires a different Python|invalid target release|release version \d+ not supported|Your Ruby version is/i,
  },
  COMPILE: {
    summary: 'The source code of this commit does not compile.',
    fix: 'Correct the places that the lines show, and push.',
    output:
      /\berror TS\d+:|^error\[E\d+\]|: undefined: \w|cannot find symbol|COMPILATION ERROR|: error: (?:expected|unknown|use of|‘)/,
  },
});

/** Causes that the message alone shows. */
export const BUILD_MESSAGE_CAUSES = causesOf(['BUILD_FAILED', 'CLUSTER_UNABLE', 'FAILED'], {
  BUILD_TIME: {
    summary: 'The build took longer than it may.',
    fix: 'Raise the time limit of builds in the advanced settings, or make the build shorter.',
    message: /The build (?:took longer than|did not end within)/,
  },
  IMAGE_SIZE: {
    summary: 'The image is larger than the operator allows.',
    fix: 'Leave out what is only needed for the build: copy the result into a second stage with a small base.',
    message: /The image takes .*, more than the .* that the operator allows/,
  },
  PROJECT_UNCLEAR: {
    summary: 'The commit has no Dockerfile, and too little tells how its project is built or started.',
    fix: 'Add what the message names, or commit a Dockerfile.',
    message: /set dockerfile_path and root_path\. (?!No project)/,
  },
  BUILD_PATH_MISSING: {
    summary: 'The commit does not have the Dockerfile, or the folder, that the service is built from.',
    fix: 'Correct the Dockerfile path or the root path of the service, or commit the file.',
    message:
      /No file "|"[^"\n]*" is not in the repository|is not in the repository \(ENO|The root path .* is not a folder|is not a (?:file|folder)\b/,
  },
  BUILD_PATH_OUTSIDE: {
    summary: 'A path or link of the build leads out of the repository.',
    fix: 'Name paths inside the repository only, and commit files in place of such links.',
    message: /leads? out of the repository|leaves the repository/,
  },
  COPY_SOURCE_MISSING: {
    summary: 'The Dockerfile copies a file that is not there.',
    fix: 'Correct the path, commit the file, or take it out of .dockerignore.',
    message:
      /is not in the build context|COPY failed|file not found in build context|failed to compute cache key|no source files were specified/,
  },
  DOCKERFILE_INVALID: {
    summary: 'The Dockerfile cannot be understood.',
    fix: 'Correct the line that the message names.',
    message:
      /unknown instruction|is not an instruction|dockerfile parse error|has no FROM|has no stage "|takes (?:a list|at least|one)|is written "|must be text in UTF-8|is unknown\.|parse error/i,
  },
  HOST_BUILD_LIMITS: {
    summary: 'The Dockerfile uses what a host cluster cannot do: it pulls no images.',
    fix: 'Use what the message offers in its place, or a cluster with Docker or Kubernetes.',
    message: /not there on this runtime|the host runtime pulls no images|has no images from a registry/,
  },
});

/** Cause of builds that nothing above explains. */
export const BUILD_COMMAND_CAUSES = causesOf(['BUILD_FAILED'], {
  BUILD_COMMAND: {
    summary: 'A command of the Dockerfile ended with an error.',
    fix: 'Read the last lines of the build, and run the same command where you develop.',
    message: /ended with status \d|returned a non-zero code|did not complete successfully/,
  },
});
