import path from 'node:path';
import type { CheckoutFiles } from '#deployments/index.ts';
import { recogniseGo } from '#services/recognition/go.ts';
import { recogniseJava } from '#services/recognition/java.ts';
import { recogniseNode } from '#services/recognition/node.ts';
import { recognisePhp } from '#services/recognition/php.ts';
import {
  dockerfileOf,
  IGNORED,
  isPlain,
  RecognitionError,
  type Project,
  type ProjectOptions,
} from '#services/recognition/project.ts';
import { ProjectFiles } from '#services/recognition/project-files.ts';
import { recognisePython } from '#services/recognition/python.ts';
import { recogniseRuby } from '#services/recognition/ruby.ts';
import { recogniseRust } from '#services/recognition/rust.ts';
import { recogniseStatic } from '#services/recognition/static.ts';

export { ProjectFiles } from '#services/recognition/project-files.ts';
export { IGNORED, LANGUAGES, RecognitionError, type ProjectOptions } from '#services/recognition/project.ts';

/** In their order: projects of the first ones may have a package.json for their pages, or an index.html. */
const RECOGNISERS: ((files: ProjectFiles, options: ProjectOptions) => Promise<Project | null>)[] = [
  recogniseGo,
  recogniseRust,
  recogniseJava,
  recogniseRuby,
  recognisePhp,
  recognisePython,
  recogniseNode,
  recogniseStatic,
];

/** Dockerfile that is made for a project. */
export interface MadeDockerfile extends Pick<Project, 'language' | 'because'> {
  text: string;
  /** Content of a `.dockerignore`; null where the project has its own. */
  ignore: string | null;
  /** Folder that is built, from the root of the repository: that of the project, or of the workspace that it is a part of. */
  rootPath: string;
  /** Path of the Dockerfile from that folder: it stands in the folder of the project. */
  dockerfilePath: string;
}

/** Name of the Dockerfile of a repository that names no other. */
export const DOCKERFILE = 'Dockerfile';

/**
 * Makes the Dockerfile of a project that has none; `owner` is the organization whose files they are. Throws RecognitionError with what would
 * help, and ParsingError for a file that cannot be read.
 */
export async function makeDockerfile(
  from: CheckoutFiles,
  { owner, rootPath: folder, ...options }: ProjectOptions & { owner: string; rootPath: string },
): Promise<MadeDockerfile> {
  const files = await ProjectFiles.open(from, owner, folder);
  for (const recognise of RECOGNISERS) {
    const project = await recognise(files, options);
    if (project === null) continue;
    const { language, because, home } = project;
    refuseUnwritable(files.from(home));
    const rootPath = `/${home.root}`;
    const dockerfilePath = path.posix.join(files.from(home), DOCKERFILE);
    const where = home === files ? '' : `, with root_path ${rootPath} and dockerfile_path ${dockerfilePath}`;
    const text = dockerfileOf(project, options, `To change it, commit it as ${dockerfilePath}${where}.`);
    const ignore = home.has('.dockerignore') ? null : IGNORED;
    return { language, because, text, ignore, rootPath, dockerfilePath };
  }
  throw new RecognitionError(
    'No project is recognised there: Node.js, Python, Go, Java, PHP, Ruby and Rust are, by their lists of packages, and sites by index.html, for applications.',
  );
}

/** Throws RecognitionError for a folder that instructions and shells would read as more than a name. */
function refuseUnwritable(folder: string): void {
  if (folder === '' || isPlain(folder)) return;
  throw new RecognitionError(
    `The folder ${JSON.stringify(folder)} must have only letters, digits and . _ @ + - in its name: rename it, or commit a Dockerfile.`,
  );
}
