import {
  copyOwned,
  run,
  serverOf,
  startWith,
  type Project,
  type ProjectOptions,
  type Unclear,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { releaseFor } from '#services/recognition/versions.ts';

/** Recognises a project of PHP by its `composer.json` or `index.php`. */
export async function recognisePhp(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  const [marker] = files.those('composer.json', 'index.php');
  if (marker === undefined) return null;
  const composer = (await files.json('composer.json', { require: 'json' })) as { require?: string } | null;
  const required = JSON.parse(composer?.require ?? '{}') as Record<string, unknown>;
  const release = releaseFor('php', typeof required['php'] === 'string' ? required['php'] : null);
  const extensions = Object.keys(required).flatMap((name) => /^ext-([a-z0-9_]+)$/.exec(name)?.[1] ?? []);
  const root = (await files.list('public')).includes('index.php') ? 'public' : '.';
  const hasPackages = marker === 'composer.json';
  const install = 'composer install --no-dev --no-interaction --no-progress --optimize-autoloader';
  const needed = extensions.length > 0 ? [`RUN install-php-extensions ${extensions.join(' ')}`] : [];
  const image = `dunglas/frankenphp:php${release}`;
  return {
    language: 'PHP',
    home: files,
    because: `${marker}: PHP ${release}, served from ${root === '.' ? 'the root of the project' : root}`,
    programs: ['php', ...(hasPackages ? ['composer'] : [])],
    build: hasPackages
      ? {
          image,
          lines: [
            ...(options.isMachine
              ? []
              : ['COPY --from=composer:2 /usr/bin/composer /usr/local/bin/composer', ...needed]),
            'COPY . ./',
            run(options, install, '/root/.composer/cache'),
          ],
        }
      : null,
    final: {
      image,
      lines: [
        ...(options.isMachine ? [] : needed),
        copyOwned(hasPackages ? '/app' : '.', hasPackages ? 'build' : undefined),
      ],
    },
    folders: hasPackages ? ['vendor/bin'] : [],
    command: startWith((await files.procfile(options)) ?? serverFor(options, root)),
  };
}

function serverFor({ port, isMachine }: ProjectOptions, root: string): string | Unclear {
  if (port === null) return serverOf('a site of PHP', ['php', 'report.php']);
  return isMachine
    ? `PHP_CLI_SERVER_WORKERS=4 php -S "0.0.0.0:$PORT" -t ${root}`
    : `frankenphp php-server --listen ":$PORT" --root ${root}`;
}
