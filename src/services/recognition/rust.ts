import {
  copyOwned,
  copyResources,
  RecognitionError,
  run,
  startWith,
  type Project,
  type ProjectOptions,
} from '#services/recognition/project.ts';
import type { ProjectFiles } from '#services/recognition/project-files.ts';

/** Recognises a program in Rust by its `Cargo.toml`. */
export async function recogniseRust(files: ProjectFiles, options: ProjectOptions): Promise<Project | null> {
  if (!files.has('Cargo.toml')) return null;
  const name = programOf(await files.toml('Cargo.toml'));
  const locked = files.has('Cargo.lock') ? ' --locked' : '';
  const build = `cargo build --release${locked} --bin ${name} && mkdir -p out && cp target/release/${name} out/`;
  return {
    language: 'RUST',
    home: files,
    because: `Cargo.toml: Rust, program ${name}`,
    programs: ['cargo', 'cc'],
    build: {
      image: 'rust:1-bookworm',
      lines: ['COPY . ./', run(options, build, '/usr/local/cargo/registry')],
    },
    final: { image: 'debian:bookworm-slim', lines: [copyOwned('/app/out/', 'build', 'bin/'), ...copyResources(files)] },
    folders: ['bin'],
    command: startWith((await files.procfile(options)) ?? name),
  };
}

/** Returns the name of the only program: that of `[[bin]]`, else of the package. */
function programOf(cargo: Record<string, unknown>): string {
  const { bin, package: own } = cargo as { bin?: unknown; package?: { name?: unknown; 'default-run'?: unknown } };
  const names = (Array.isArray(bin) ? bin : []).map((one: { name?: unknown } | null) => one?.name);
  const name = own?.['default-run'] ?? (names.length > 0 ? names[0] : own?.name);
  if (typeof name === 'string' && /^[\w-]+$/.test(name) && (names.length < 2 || own?.['default-run'])) return name;
  throw new RecognitionError(
    'Cargo.toml names no single program: set default-run in [package], or commit a Dockerfile.',
  );
}
