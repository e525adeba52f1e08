import { copyOwned, type Project, type ProjectOptions, type Stage } from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';

/** Server of files. Its program has no use for the capability of its file, which an account without privileges does not get. */
const SERVER = 'caddy:2-alpine';

/** Returns the stage and the command that serve files. A single page answers every path that is no file. */
export function serving(copy: string, { isSinglePage }: { isSinglePage: boolean }): { final: Stage; command: string } {
  const site = [
    '{',
    '  admin off',
    '  auto_https off',
    '}',
    ':{$PORT} {',
    '  root * .',
    '  encode zstd gzip',
    '  @hidden path */.* /Caddyfile',
    '  error @hidden 404',
    // A missing file is no page: a browser that asks for a script of the release before gets no HTML.
    ...(isSinglePage
      ? ['  @page {', '    not path_regexp [.][A-Za-z0-9]+$', '    not file', '  }', '  rewrite @page /index.html']
      : ['  try_files {path} {path}.html {path}/index.html']),
    '  file_server',
    '}',
  ];
  return {
    final: {
      image: SERVER,
      lines: [
        'ENV XDG_CONFIG_HOME=/tmp XDG_DATA_HOME=/tmp',
        copy,
        `RUN printf '%s\\n' ${site.map((line) => `'${line}'`).join(' ')} > Caddyfile`,
      ],
    },
    command: 'exec caddy run --config Caddyfile --adapter caddyfile',
  };
}

/** Recognises a folder of files for browsers by its `index.html`. */
export async function recogniseStatic(files: ProjectFiles, { port }: ProjectOptions): Promise<Project | null> {
  const [folder] = files.has('index.html')
    ? ['.']
    : (await files.list('public')).includes('index.html')
      ? ['public']
      : [];
  // Nothing in a folder of files runs to an end.
  if (folder === undefined || port === null) return null;
  return {
    language: 'STATIC',
    home: files,
    because: `${folder === '.' ? '' : 'public/'}index.html: files for browsers`,
    programs: ['caddy'],
    build: null,
    ...serving(copyOwned(folder), { isSinglePage: false }),
  };
}
