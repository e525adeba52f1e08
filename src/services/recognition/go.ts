import {
  copyOwned,
  copyResources,
  installing,
  RecognitionError,
  run,
  type Project,
  type ProjectOptions,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';

/** Recognises a module of Go by its `go.mod`. */
export async function recogniseGo(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  if (!files.has('go.mod')) return null;
  const module = await files.read('go.mod');
  const version = /^go[ \t]+(1\.\d+)/m.exec(module)?.[1] ?? '1';
  const program = await mainPackage(files);
  const caches = ['/root/.cache/go-build', '/go/pkg/mod'];
  return {
    language: 'GO',
    because: `go.mod: Go ${version}, program ${program}`,
    programs: ['go'],
    build: {
      image: `golang:${version}`,
      lines: [
        'ENV CGO_ENABLED=0',
        ...installing(
          files.those('go.mod', 'go.sum'),
          [run(options, 'go mod download', ...caches)],
          /=>[ \t]*\.{1,2}\//.test(module) || files.has('vendor/'),
        ),
        run(options, `go build -trimpath -ldflags="-s -w" -o out/app ${program}`, ...caches),
      ],
    },
    final: { image: 'alpine:3.22', lines: [copyOwned('/app/out/app', 'build'), ...copyResources(files)] },
    command: 'exec ./app',
  };
}

/** Returns the package of the program: the root's, or the only one below `cmd`. */
async function mainPackage(files: ProjectFiles): Promise<string> {
  if (files.has('main.go')) return '.';
  const commands = (await files.list('cmd')).filter((name) => /^[\w.-]+\/$/.test(name));
  if (commands.length === 1) return `./cmd/${commands[0]!.slice(0, -1)}`;
  if (commands.length > 1)
    throw new RecognitionError(
      `The Go module has several programs below cmd (${commands.join(', ')}): commit a Dockerfile that builds one of them.`,
    );
  return '.';
}
