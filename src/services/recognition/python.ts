import {
  copyOwned,
  installing,
  RecognitionError,
  run,
  startWith,
  type Project,
  type ProjectOptions,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';
import { releaseFor } from '#services/recognition/versions.ts';

/** Files that make a folder a project of Python, the one that decides how packages are installed first. */
const MARKERS = ['uv.lock', 'poetry.lock', 'requirements.txt', 'pyproject.toml', 'manage.py'];
/** Files that are looked for the application, or started. */
const ENTRIES = ['main.py', 'app.py', 'server.py', 'asgi.py', 'wsgi.py'];

/** Entries of lists of packages that lead to files of the project: further lists, folders, packages of a workspace. */
const LOCAL =
  /^[ \t]*(?:-[rce]|--(?:requirement|constraint|editable)|\.)|\bpath[ \t]*=[ \t]*["']|tool\.uv\.workspace|\bfile:/m;

/** Recognises a project of Python by its list of packages. */
export async function recognisePython(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  const [marker] = files.those(...MARKERS);
  if (marker === undefined) return null;
  const start = (await files.procfile('web')) ?? (await startOf(files));
  // Projects of Node.js have scripts in Python, too.
  if (start === null && files.has('package.json')) return null;
  if (start === null)
    throw new RecognitionError(
      `This looks like a project of Python (${marker}), but nothing says how it is started: add a main.py, or a Procfile with a line "web: …".`,
    );
  const { project } = (await files.toml('pyproject.toml')) as { project?: { 'requires-python'?: unknown } };
  const range = (await files.read('.python-version')) || project?.['requires-python'];
  const release = releaseFor('python', typeof range === 'string' ? range : null);
  const installer = INSTALLERS[marker] ?? NONE;
  const lists = files.those(...installer.files, 'pyproject.toml');
  const texts = await Promise.all(lists.map((file) => files.read(file)));
  const install = installer.install.map((command) => run(options, command, ...installer.caches));
  return {
    language: 'PYTHON',
    because: `${marker}: Python ${release} with ${installer.name}`,
    programs: ['python3', ...installer.programs],
    build: {
      image: `python:${release}`,
      lines: [
        ...(options.isMachine ? [] : installer.before),
        ...installing(lists, install, lists.length === 0 || LOCAL.test(texts.join('\n'))),
        ...(installer.after ?? []).map((command) => run(options, command, ...installer.caches)),
      ],
    },
    final: {
      image: `python:${release}-slim`,
      lines: ['ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1', copyOwned('/app', 'build')],
    },
    command: startWith(start, '.venv/bin'),
  };
}

/** Way in which packages are installed into `.venv`. */
interface Installer {
  name: string;
  programs: string[];
  /** Files that an installation needs. */
  files: string[];
  before: string[];
  install: string[];
  /** Commands after the sources were copied. */
  after?: string[];
  caches: string[];
}

const PIP = ['/root/.cache/pip'];
const venv = 'python3 -m venv .venv';
const NONE: Installer = {
  name: 'no packages',
  programs: [],
  files: ['manage.py'],
  before: [],
  install: [venv],
  caches: [],
};
const INSTALLERS: Record<string, Installer> = {
  'uv.lock': {
    name: 'uv',
    programs: ['uv'],
    files: ['uv.lock'],
    before: ['RUN pip install --no-cache-dir uv', 'ENV UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy'],
    install: ['uv sync --frozen --no-dev --no-install-project'],
    caches: ['/root/.cache/uv'],
  },
  'poetry.lock': {
    name: 'Poetry',
    programs: ['poetry'],
    files: ['poetry.lock'],
    before: ['RUN pip install --no-cache-dir poetry'],
    install: ['POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --only main --no-root --no-interaction'],
    caches: ['/root/.cache/pypoetry'],
  },
  'requirements.txt': {
    name: 'pip',
    programs: [],
    files: ['requirements.txt'],
    before: [],
    install: [`${venv} && .venv/bin/python -m pip install --disable-pip-version-check -r requirements.txt`],
    caches: PIP,
  },
  'pyproject.toml': {
    name: 'pip',
    programs: [],
    files: [],
    before: [],
    install: [venv],
    after: ['.venv/bin/python -m pip install --disable-pip-version-check .'],
    caches: PIP,
  },
};

/** Returns how the project is started: by the server that it has for its framework, or as a file; null if nothing tells. */
async function startOf(files: ProjectFiles): Promise<string | null> {
  const lists = await Promise.all(['requirements.txt', 'pyproject.toml'].map((file) => files.read(file)));
  const uses = (name: string) => new RegExp(`(?:^|["'\\s])${name}\\b`, 'im').test(lists.join('\n'));
  if (files.has('manage.py')) {
    const settings = /DJANGO_SETTINGS_MODULE['"]\s*,\s*['"]([\w.]+)\.settings/.exec(await files.read('manage.py'))?.[1];
    if (settings && uses('gunicorn')) return `python -m gunicorn ${settings}.wsgi --bind "0.0.0.0:$PORT"`;
    throw new RecognitionError(
      'This looks like a project of Django (manage.py), whose packages have no gunicorn to serve it: add gunicorn, or a Procfile with a line "web: …".',
    );
  }
  for (const file of files.those(...ENTRIES)) {
    const name = /^(\w+)[ \t]*(?::[^=\n]*)?=[ \t]*(FastAPI|Starlette|Litestar|Flask|Quart)\(/m.exec(
      await files.read(file),
    );
    const app = `${file.slice(0, -'.py'.length)}:${name?.[1]}`;
    if (name && !/Flask/.test(name[2]!) && uses('(?:uvicorn|fastapi\\[standard\\])'))
      return `python -m uvicorn ${app} --host 0.0.0.0 --port "$PORT"`;
    if (name && /Flask/.test(name[2]!) && uses('gunicorn')) return `python -m gunicorn ${app} --bind "0.0.0.0:$PORT"`;
  }
  const [entry] = files.those(...ENTRIES);
  return entry === undefined ? null : `python ${entry}`;
}
