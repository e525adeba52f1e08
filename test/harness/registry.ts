import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { pack } from 'tar-stream';
import { startTokenServer, type TokenServer } from '#test/harness/registry-tokens.ts';

/** Account of registries that require authentication. */
export const REGISTRY_USER = { username: 'ada', password: 'secret' };
/** Bcrypt hash of that password; the registry accepts no other hash. */
const HTPASSWD = 'ada:$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n';

/** Setting under which the program calls registries on this machine. */
export const ALLOW_LOOPBACK = { QUARTERDECK_ALLOWED_PRIVATE_ADDRESSES: '127.0.0.0/8' };

const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const IMAGE_CONFIG = 'application/vnd.oci.image.config.v1+json';
const IMAGE_LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const CHART_CONFIG = 'application/vnd.cncf.helm.config.v1+json';
const CHART_LAYER = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';

/** Real registry (Debian's `docker-registry`) on loopback. */
export interface TestRegistry {
  /** Host and port, with which image references begin: `127.0.0.1:41234`. */
  host: string;
  url: string;
  /** Credentials that the registry requires; null for an open one. */
  credentials: { username: string; password: string } | null;
  /** Pushes an image whose files are `files`; answers the digest of its manifest. */
  pushImage(name: string, tag: string, options?: ImageOptions): Promise<string>;
  /** Pushes an index over images of two platforms; answers its digest. */
  pushIndex(name: string, tag: string): Promise<string>;
  /** Pushes a Helm chart as `helm push` does; answers the digest of its manifest. */
  pushChart(name: string, version: string, options?: ChartOptions): Promise<string>;
  stop(): Promise<void>;
}

interface ImageOptions {
  /** Content by path, without a slash in front; a program takes `mode: 0o755`. */
  files?: Record<string, string | { content: string | Buffer; mode: number }>;
  /** The whole layer as a tar archive, in place of `files`. */
  layer?: Buffer;
  /** `Entrypoint`, `Cmd`, `Env` and the like of the image's configuration. */
  config?: object;
}

export interface ChartOptions {
  description?: string;
  files?: Record<string, string>;
}

export interface RegistryOptions {
  /** Authentication: none, a password, or a token of a token service. */
  auth?: 'none' | 'htpasswd' | 'token';
  /** Address that the registry calls after each push, with this `Authorization`; none by default. */
  notifies?: { url: string; authorization: string };
}

/** Starts a registry of its own that keeps everything in memory. */
export async function startRegistry({ auth = 'none', notifies }: RegistryOptions = {}): Promise<TestRegistry> {
  const program = ['/usr/bin/docker-registry', '/usr/local/bin/docker-registry'].find((file) => existsSync(file));
  if (!program)
    throw new Error('These tests need a registry: `apt-get install --no-install-recommends docker-registry`.');
  const folder = mkdtempSync(path.join(tmpdir(), 'qd-registry-'));
  const tokens = auth === 'token' ? await startTokenServer(REGISTRY_USER) : null;
  const child = startProgram(program, folder, { auth, notifies }, tokens);
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await tokens?.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const host = `127.0.0.1:${await portOf(child)}`;
    const authorize = authorizer(auth, tokens);
    return {
      host,
      url: `http://${host}`,
      credentials: auth === 'none' ? null : REGISTRY_USER,
      stop,
      ...pusher(host, authorize),
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function startProgram(
  program: string,
  folder: string,
  { auth, notifies }: RegistryOptions,
  tokens: TokenServer | null,
) {
  writeFileSync(path.join(folder, 'htpasswd'), HTPASSWD);
  if (tokens) writeFileSync(path.join(folder, 'tokens.pem'), tokens.certificate);
  const access = {
    none: {},
    htpasswd: { auth: { htpasswd: { realm: 'test', path: path.join(folder, 'htpasswd') } } },
    token: {
      auth: {
        token: {
          realm: tokens?.realm,
          service: tokens?.service,
          issuer: tokens?.issuer,
          rootcertbundle: path.join(folder, 'tokens.pem'),
        },
      },
    },
  }[auth ?? 'none'];
  const configuration = {
    version: 0.1,
    log: { level: 'info', formatter: 'json', accesslog: { disabled: true } },
    storage: { inmemory: {}, delete: { enabled: true }, cache: { blobdescriptor: 'inmemory' } },
    http: { addr: '127.0.0.1:0', secret: 'test' },
    ...access,
    ...(notifies ? { notifications: { endpoints: [endpointOf(notifies)] } } : {}),
  };
  // JSON is valid YAML.
  const file = path.join(folder, 'config.yml');
  writeFileSync(file, JSON.stringify(configuration));
  return spawn(program, ['serve', file], { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: process.env['PATH'] } });
}

/** Returns the endpoint of notifications, as docs/guides/container-images.md has it. */
const endpointOf = ({ url, authorization }: NonNullable<RegistryOptions['notifies']>) => ({
  name: 'quarterdeck',
  url,
  headers: { Authorization: [authorization] },
  timeout: '5s',
  threshold: 5,
  backoff: '1s',
  ignore: { actions: ['pull'], mediatypes: ['application/octet-stream'] },
});

/** Returns the port that the registry's output names. Throws with its whole output if it ends before that. */
async function portOf(child: ChildProcess): Promise<number> {
  let said = '';
  return new Promise((resolve, reject) => {
    const read = (chunk: Buffer) => {
      said += String(chunk);
      const port = /listening on 127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (port) resolve(Number(port));
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`docker-registry ended with ${code}: ${said}`)));
  });
}

type Authorize = (name: string) => Promise<Record<string, string>>;

function authorizer(auth: RegistryOptions['auth'], tokens: TokenServer | null): Authorize {
  if (tokens)
    return async (name) => ({ authorization: `Bearer ${await tokens.issue(`repository:${name}:pull,push`)}` });
  const { username, password } = REGISTRY_USER;
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const headers: Record<string, string> = auth === 'htpasswd' ? { authorization: basic } : {};
  return async () => headers;
}

function pusher(host: string, authorize: Authorize): Pick<TestRegistry, 'pushImage' | 'pushIndex' | 'pushChart'> {
  const pushImage = async (
    name: string,
    tag: string | null,
    { files = {}, layer: given, config = {} }: ImageOptions,
    arch = 'amd64',
  ) => {
    const layer = given ?? (await archive({ 'hello.txt': `${name}:${tag} ${arch}`, ...files }));
    const content = {
      architecture: arch,
      os: 'linux',
      config,
      rootfs: { type: 'layers', diff_ids: [digestOf(layer)] },
    };
    return pushManifest(
      { host, authorize, name, tag },
      IMAGE_CONFIG,
      content,
      IMAGE_LAYER,
      gzipSync(layer, { level: 1 }),
    );
  };
  return {
    pushImage: async (name, tag, options = {}) => (await pushImage(name, tag, options, machine())).digest,
    pushIndex: async (name, tag) => {
      const images = [await pushImage(name, null, {}, 'amd64'), await pushImage(name, null, {}, 'arm64')];
      const manifests = images.map(({ digest, size }, index) => ({
        mediaType: OCI_MANIFEST,
        digest,
        size,
        platform: { os: 'linux', architecture: index === 0 ? 'amd64' : 'arm64' },
      }));
      const body = Buffer.from(JSON.stringify({ schemaVersion: 2, mediaType: OCI_INDEX, manifests }));
      return putManifest({ host, authorize, name, tag }, OCI_INDEX, body);
    },
    pushChart: async (name, version, options = {}) => {
      // Tags have no plus sign: helm writes an underscore.
      const to = { host, authorize, name, tag: version.replaceAll('+', '_') };
      const archive = await packChart(name.split('/').at(-1)!, version, options);
      return (await pushManifest(to, CHART_CONFIG, chartFile(name, version, options), CHART_LAYER, archive)).digest;
    },
  };
}

/** Returns the text of `Chart.yaml`; JSON is YAML. */
const chartFile = (name: string, version: string, { description = 'a chart' }: ChartOptions) => ({
  apiVersion: 'v2',
  name: name.split('/').at(-1)!,
  version,
  description,
});

/** Packs a chart as `helm package` does. `files` are named from its folder. */
export async function packChart(name: string, version: string, options: ChartOptions = {}): Promise<Buffer> {
  const files = {
    'Chart.yaml': JSON.stringify(chartFile(name, version, options)),
    'values.yaml': '{}',
    ...options.files,
  };
  return gzipSync(
    await archive(Object.fromEntries(Object.entries(files).map(([file, text]) => [`${name}/${file}`, text]))),
  );
}

interface Destination {
  host: string;
  authorize: Authorize;
  name: string;
  /** Tag of the image; null if only its digest names it. */
  tag: string | null;
}

async function pushManifest(to: Destination, configType: string, config: object, layerType: string, layer: Buffer) {
  const text = Buffer.from(JSON.stringify(config));
  const body = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      config: { mediaType: configType, digest: await putBlob(to, text), size: text.length },
      layers: [{ mediaType: layerType, digest: await putBlob(to, layer), size: layer.length }],
    }),
  );
  return { digest: await putManifest(to, OCI_MANIFEST, body), size: body.length };
}

async function putBlob({ host, authorize, name }: Destination, content: Buffer): Promise<string> {
  const digest = digestOf(content);
  const headers = await authorize(name);
  const begun = await fetch(`http://${host}/v2/${name}/blobs/uploads/`, { method: 'POST', headers });
  if (begun.status !== 202) throw new Error(`The registry took no upload: ${begun.status} ${await begun.text()}`);
  const url = new URL(begun.headers.get('location')!, `http://${host}`);
  url.searchParams.set('digest', digest);
  const type = { 'content-type': 'application/octet-stream' };
  const put = await fetch(url, { method: 'PUT', headers: { ...headers, ...type }, body: new Uint8Array(content) });
  if (put.status !== 201) throw new Error(`The registry took no blob: ${put.status} ${await put.text()}`);
  return digest;
}

async function putManifest({ host, authorize, name, tag }: Destination, type: string, body: Buffer): Promise<string> {
  const digest = digestOf(body);
  const put = await fetch(`http://${host}/v2/${name}/manifests/${tag ?? digest}`, {
    method: 'PUT',
    headers: { ...(await authorize(name)), 'content-type': type },
    body: new Uint8Array(body),
  });
  if (put.status !== 201) throw new Error(`The registry took no manifest: ${put.status} ${await put.text()}`);
  return digest;
}

async function archive(files: NonNullable<ImageOptions['files']>): Promise<Buffer> {
  const tar = pack();
  for (const [name, file] of Object.entries(files)) {
    const { content, mode } = typeof file === 'string' ? { content: file, mode: 0o644 } : file;
    tar.entry({ name, mode, mtime: new Date(0) }, content);
  }
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Returns this machine's architecture as images name it. */
const machine = (): string => (process.arch === 'x64' ? 'amd64' : process.arch);
const digestOf = (content: Buffer): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;
