import {
  copyOwned,
  installing,
  run,
  serverOf,
  startWith,
  type Project,
  type ProjectOptions,
  type Unclear,
  unstarted,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { releaseFor } from '#services/recognition/versions.ts';

/** Recognises a project of Ruby by its `Gemfile`. */
export async function recogniseRuby(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  if (!files.has('Gemfile')) return null;
  const gems = `${await files.read('Gemfile')}\n${await files.read('Gemfile.lock')}`;
  const own = (await files.read('.ruby-version')) || /^[ \t]*ruby[ \t]+['"]([^'"\n]+)['"]/m.exec(gems)?.[1];
  const release = releaseFor('ruby', own);
  const isRails = files.has('bin/') && /^[ \t]*(?:gem ['"])?rails\b/m.test(gems);
  const start = (await files.procfile(options)) ?? startOf(files, options, gems, isRails);
  const frozen = files.has('Gemfile.lock') ? ' && bundle config set --local frozen true' : '';
  const settings = `bundle config set --local path vendor/bundle && bundle config set --local without development:test${frozen}`;
  const assets =
    isRails && files.has('app/')
      ? ['RUN SECRET_KEY_BASE_DUMMY=1 RAILS_ENV=production bundle exec rails assets:precompile']
      : [];
  return {
    language: 'RUBY',
    home: files,
    because: `Gemfile: Ruby ${release}${isRails ? ' with Rails' : ''}`,
    programs: ['ruby', 'bundle'],
    build: {
      image: `ruby:${release}`,
      lines: [
        ...installing(
          files.those('Gemfile', 'Gemfile.lock', '.ruby-version', '.tool-versions'),
          [`RUN ${settings}`, run(options, 'bundle install')],
          /\bpath:|\bgemspec\b/.test(gems),
        ),
        ...assets,
      ],
    },
    final: {
      image: `ruby:${release}-slim`,
      lines: [
        'ENV RACK_ENV=production RAILS_ENV=production RAILS_LOG_TO_STDOUT=1 RAILS_SERVE_STATIC_FILES=1',
        copyOwned('/app', 'build'),
      ],
    },
    command: startWith(start),
  };
}

function startOf(files: ProjectFiles, { port }: ProjectOptions, gems: string, isRails: boolean): string | Unclear {
  if (port === null && (isRails || files.has('config.ru')))
    return serverOf(`a project of ${isRails ? 'Rails' : 'Rack'}`, ['bundle', 'exec', 'rake', 'report']);
  if (isRails) return 'bundle exec rails server --binding 0.0.0.0 --port "$PORT"';
  if (!files.has('config.ru'))
    return files.has('app.rb')
      ? 'bundle exec ruby app.rb'
      : unstarted('a project of Ruby (Gemfile)', port === null ? 'an app.rb' : 'a config.ru', port);
  if (/^[ \t]*(?:gem ['"])?puma\b/m.test(gems)) return 'bundle exec puma --bind "tcp://0.0.0.0:$PORT"';
  return 'bundle exec rackup --host 0.0.0.0 --port "$PORT"';
}
