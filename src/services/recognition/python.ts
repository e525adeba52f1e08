import {
  copyOwned,
  installing,
  namesIn,
  RecognitionError,
  run,
  serverOf,
  startWith,
  unstarted,
  type Project,
  type ProjectOptions,
  type Unclear,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { uvWorkspaceAbove } from '#services/recognition/python-workspace.ts';
import { releaseFor } from '#services/recognition/versions.ts';

/** Files that make a folder a project of Python, the one that decides how packages are installed first. */
const MARKERS = ['uv.lock', 'poetry.lock', 'requirements.txt', 'pyproject.toml', 'manage.py'];
/** Files that are looked for the application, or started. */
const ENTRIES = ['main.py', 'app.py', 'server.py', 'asgi.py', 'wsgi.py'];

/** Entries of lists of packages that lead to files of the project: further lists, folders, packages of a workspace. */
const LOCAL =
  /^[ \t]*(?:-[rce]|--(?:requirement|constraint|editable)|\.)|\bpath[ \t]*=[ \t]*["']|tool\.uv\.workspace|\bfile:/m;

/** Entries of lists of packages that lead out of the project. */
const OUTSIDE = /^[ \t]*(?:(?:-e|--editable)[ \t=]+)?\.\.\/|\b(?:path[ \t]*=[ \t]*["']|file:)\.\.\//m;

/** Recognises a project of Python by its list of packages, with its workspace of uv. */
export async function recognisePython(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  const [marker] = files.those(...MARKERS);
  if (marker === undefined) return null;
  const start = (await files.procfile(options)) ?? (await startOf(files, options));
  // Projects of Node.js have scripts in Python, too.
  if (start === null && files.has('package.json')) return null;
  const workspace = marker === 'pyproject.toml' ? await uvWorkspaceAbove(files) : null;
  const { home, folder } = workspace ?? { home: files, folder: '' };
  const release = await releaseOf(files, home);
  const installer = workspace ? ofWorkspace(workspace.name) : (INSTALLERS[marker] ?? NONE);
  const lists = home.those(...installer.files, 'pyproject.toml');
  const texts = await Promise.all(lists.map((file) => home.read(file)));
  if (!workspace) refuseOutside(files, texts.join('\n'));
  const secrets = [
    ...new Set([
      ...namesIn(...texts),
      ...options.variables.filter((name) => installer.variables.test(name)).toSorted(),
    ]),
  ];
  const { isMachine } = options;
  const runs = (commands: string[]) =>
    commands.map((command) => run({ isMachine, secrets }, command, ...installer.caches));
  const readsSources = workspace !== null || lists.length === 0 || LOCAL.test(texts.join('\n'));
  return {
    language: 'PYTHON',
    home,
    because: `${marker}: Python ${release} with ${installer.name}${workspace ? `, of the workspace of ${folder}` : ''}`,
    programs: ['python3', ...installer.programs],
    build: {
      image: `python:${release}`,
      lines: [
        ...(isMachine ? [] : installer.before),
        ...installing(lists, runs(installer.install(home)), readsSources),
        ...runs(installer.after?.(home) ?? []),
      ],
    },
    final: {
      image: `python:${release}-slim`,
      lines: ['ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1', copyOwned('/app', 'build')],
    },
    workdir: folder,
    folders: ['.venv/bin'],
    command: startWith(start ?? unstarted(`a project of Python (${marker})`, 'a main.py', options.port)),
  };
}

/** Throws RecognitionError for packages that lie outside of the folder which is built. */
function refuseOutside({ root }: ProjectFiles, lists: string): void {
  const outside = OUTSIDE.exec(lists)?.[0];
  if (outside === undefined) return;
  throw new RecognitionError(
    `The list of packages names a folder outside of root_path /${root} (${outside.trim()}…): make the folders a workspace of uv, with uv.lock above them, or commit a Dockerfile and set root_path to the folder above.`,
  );
}

/** Returns the release of Python that the project names, or its workspace. */
async function releaseOf(files: ProjectFiles, home: ProjectFiles): Promise<string> {
  for (const one of new Set([files, home])) {
    const { project } = (await one.toml('pyproject.toml')) as { project?: { 'requires-python'?: unknown } };
    const range = (await one.read('.python-version')) || project?.['requires-python'];
    if (typeof range === 'string') return releaseFor('python', range);
  }
  return releaseFor('python', null);
}

/** Way in which packages are installed into `.venv`. */
interface Installer {
  name: string;
  programs: string[];
  /** Files that an installation needs. */
  files: string[];
  before: string[];
  install(files: ProjectFiles): string[];
  /** Commands after the sources were copied. */
  after?(files: ProjectFiles): string[];
  caches: string[];
  /** Names of the variables by which it reaches registries of packages. */
  variables: RegExp;
}

const PIP = {
  name: 'pip',
  programs: [],
  before: [],
  caches: ['/root/.cache/pip'],
  variables: /^PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|TRUSTED_HOST)$/,
};
const UV = {
  name: 'uv',
  programs: ['uv'],
  files: ['uv.lock'],
  before: ['RUN pip install --no-cache-dir uv', 'ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy'],
  caches: ['/root/.cache/uv'],
  variables: /^UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_\w+_(?:USERNAME|PASSWORD))$/,
};
const venv = 'python3 -m venv .venv';
/** Returns the command that installs by pip, with the settings of the project. */
const pip = (files: ProjectFiles, what: string): string =>
  `${files.has('pip.conf') ? 'PIP_CONFIG_FILE=pip.conf ' : ''}.venv/bin/python -m pip install --disable-pip-version-check ${what}`;

const NONE: Installer = { ...PIP, name: 'no packages', files: ['manage.py'], install: () => [venv] };
const INSTALLERS: Record<string, Installer> = {
  'uv.lock': { ...UV, install: () => ['uv sync --frozen --no-dev --no-install-project'] },
  'poetry.lock': {
    name: 'Poetry',
    programs: ['poetry'],
    files: ['poetry.lock'],
    before: ['RUN pip install --no-cache-dir poetry'],
    install: () => ['POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --only main --no-root --no-interaction'],
    caches: ['/root/.cache/pypoetry'],
    variables: /^POETRY_(?:HTTP_BASIC_\w+_(?:USERNAME|PASSWORD)|PYPI_TOKEN_\w+)$/,
  },
  'requirements.txt': {
    ...PIP,
    files: ['requirements.txt', 'pip.conf'],
    install: (files) => [`${venv} && ${pip(files, '-r requirements.txt')}`],
  },
  'pyproject.toml': {
    ...PIP,
    files: ['pip.conf'],
    install: () => [venv],
    after: (files) => [pip(files, '.')],
  },
};
/** Returns the installer of one package of a workspace, with those of the workspace that it needs. */
const ofWorkspace = (name: string): Installer => ({
  ...UV,
  install: () => [`uv sync --frozen --no-dev --no-editable --package ${name}`],
});

/** Returns how the project is started: by the server that it has for its framework, or as a file; null if nothing tells. */
async function startOf(files: ProjectFiles, { port }: ProjectOptions): Promise<string | Unclear | null> {
  const lists = await Promise.all(['requirements.txt', 'pyproject.toml'].map((file) => files.read(file)));
  const uses = (name: string) => new RegExp(`(?:^|["'\\s])${name}\\b`, 'im').test(lists.join('\n'));
  if (files.has('manage.py')) {
    if (port === null) return serverOf('a project of Django', ['python', 'manage.py', 'report']);
    const settings = /DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([\w.]+)\.settings/.exec(await files.read('manage.py'))?.[1];
    if (settings && uses('gunicorn')) return `python -m gunicorn ${settings}.wsgi --bind "0.0.0.0:$PORT"`;
    return {
      unclear:
        'This looks like a project of Django (manage.py), whose packages have no gunicorn to serve it: add gunicorn, or a Procfile with a line "web: …".',
    };
  }
  for (const file of files.those(...ENTRIES)) {
    const name = /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(FastAPI|Starlette|Litestar|Flask|Quart)\(/m.exec(
      await files.read(file),
    );
    if (name && port === null) return serverOf(`a project of ${name[2]}`, ['python', 'report.py']);
    const app = `${file.slice(0, -'.py'.length)}:${name?.[1]}`;
    if (name && !/Flask/.test(name[2]!) && uses('(?:uvicorn|fastapi\\[standard\\])'))
      return `python -m uvicorn ${app} --host 0.0.0.0 --port "$PORT"`;
    if (name && /Flask/.test(name[2]!) && uses('gunicorn')) return `python -m gunicorn ${app} --bind "0.0.0.0:$PORT"`;
  }
  const [entry] = files.those(...ENTRIES);
  return entry === undefined ? null : `python ${entry}`;
}
