import {
  copyOwned,
  copyResources,
  installing,
  RecognitionError,
  run,
  startWith,
  type Project,
  type ProjectOptions,
  type Unclear,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';

/** Recognises a module of Go by its `go.mod`, with its workspace, or a program within a module. */
export async function recogniseGo(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  const place = files.has('go.mod') ? await moduleAt(files) : await programWithin(files);
  if (place === null) return null;
  const { home, folder, module } = place;
  const text = await module.read('go.mod');
  const version = /^go[ \t]+(1\.\d+)/m.exec(text)?.[1] ?? '1';
  const program = module === files ? await programOf(files, options, text) : await onlyProgram(files, module, options);
  const caches = ['/root/.cache/go-build', '/go/pkg/mod'];
  const within = folder === '' ? '' : `cd ${folder} && `;
  const readsSources = folder !== '' || /=>[ \t]*\.\//.test(text) || module.has('vendor/');
  const resources = home === files ? copyResources(files) : [];
  return {
    language: 'GO',
    home,
    because: `go.mod: Go ${version}, ${program.what}${folder === '' ? '' : `, of the workspace of ${folder}`}`,
    programs: ['go'],
    build: {
      image: `golang:${version}`,
      lines: [
        'ENV CGO_ENABLED=0',
        ...installing(
          home.those('go.mod', 'go.sum'),
          [run(options, `${within}go mod download`, ...caches)],
          readsSources,
        ),
        ...program.builds.map(({ to, packages }) =>
          run(options, `${within}go build -trimpath -ldflags="-s -w" -o /app/out/${to} ${packages}`, ...caches),
        ),
      ],
    },
    final: { image: 'alpine:3.22', lines: [copyOwned('/app/out/', 'build', 'bin/'), ...resources] },
    folders: ['bin'],
    command: startWith(program.command),
  };
}

interface Place {
  /** Folder that is built. */
  home: ProjectFiles;
  /** Folder of the module from there. */
  folder: string;
  module: ProjectFiles;
}

/** Returns the place of a module, within the workspace above that uses it. Throws RecognitionError where it needs others. */
async function moduleAt(module: ProjectFiles): Promise<Place> {
  for (const home of await module.above()) {
    const folder = module.from(home);
    if ((await home.read('go.work')).split(/[\s()]+/).includes(`./${folder}`)) return { home, folder, module };
  }
  const outside = /=>[ \t]*(\.\.\/\S*)/.exec(await module.read('go.mod'))?.[1];
  if (outside === undefined) return { home: module, folder: '', module };
  throw new RecognitionError(
    `go.mod takes a module from ${outside}, which is not below root_path /${module.root}: commit a go.work above both that uses them, or a Dockerfile that is built from there.`,
  );
}

/** Returns the place of a program that is a folder of a module; null if the folder is none. */
async function programWithin(files: ProjectFiles): Promise<Place | null> {
  if (!files.has('main.go')) return null;
  const module = (await files.above()).find((folder) => folder.has('go.mod'));
  return module === undefined ? null : { home: module, folder: '', module };
}

async function onlyProgram(files: ProjectFiles, module: ProjectFiles, options: ProjectOptions): Promise<Program> {
  const packages = `./${files.from(module)}`;
  const name = packages.split('/').at(-1)!;
  const command = (await files.procfile(options)) ?? name;
  return { what: `program ${packages}`, builds: [{ to: name, packages }], command };
}

interface Program {
  what: string;
  /** Output below `out`, and packages, of each `go build`. */
  builds: { to: string; packages: string }[];
  command: string | Unclear;
}

/** Folders below `cmd` that hold no program by the rules of Go. */
const NO_PROGRAMS = new Set(['internal/', 'testdata/', 'vendor/']);

/** Returns the program of the root, or the only one below `cmd`; all of them where the service or a Procfile names the command. */
async function programOf(files: ProjectFiles, options: ProjectOptions, module: string): Promise<Program> {
  const named = (await files.list('cmd')).filter((name) => /^\w[\w.-]*\/$/.test(name) && !NO_PROGRAMS.has(name));
  const names = named.map((name) => name.slice(0, -1)).toSorted();
  const hasRoot = files.has('main.go') || names.length === 0;
  const root = rootName(module, names);
  const start = await files.procfile(options);
  const single = hasRoot ? root : names.length === 1 ? names[0]! : null;
  const command = start ?? single ?? choices(names);
  const isAlone = !options.hasCommand && start === null;
  if (hasRoot && (isAlone || names.length === 0))
    return { what: 'program .', builds: [{ to: root, packages: '.' }], command };
  if (!hasRoot && single !== null)
    return { what: `program ./cmd/${single}`, builds: [{ to: single, packages: `./cmd/${single}` }], command };
  const what = `programs ${[...(hasRoot ? [root] : []), ...names].join(', ')}`;
  return {
    what,
    builds: [...(hasRoot ? [{ to: root, packages: '.' }] : []), { to: '', packages: './cmd/...' }],
    command,
  };
}

/** Returns the name of the program of the root: that of the module, as Go would call it. */
function rootName(module: string, others: string[]): string {
  const parts = (/^module[ \t]+"?([^\s"]+)/m.exec(module)?.[1] ?? '').split('/');
  const last = parts.findLast((part) => !/^v\d+$/.test(part)) ?? '';
  const name = /^\w[\w.-]*$/.test(last) ? last : 'app';
  return others.includes(name) ? 'app' : name;
}

const choices = (names: string[]): Unclear => ({
  unclear: `The Go module has several programs below cmd (${names.join(', ')}): name the one to run in the arguments of the service, such as ${JSON.stringify([names[0]])}, or in a Procfile.`,
});
