import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { runProgram, startService, useInstallation } from '#cli/testing.ts';

const SCRIPT = path.join(import.meta.dirname, '../../scripts/bundle.mjs');
const { settings } = useInstallation('bundle');

/** Makes the bundle as the command `quarterdeck` does. Returns the path of its program. */
function bundled(): string {
  const print = `import(${JSON.stringify(SCRIPT)}).then(async ({ bundleProgram }) => console.log(await bundleProgram()))`;
  const { stdout, stderr } = spawnSync(process.execPath, ['-e', print], { encoding: 'utf8' });
  expect(stderr).not.toContain('There is no bundle');
  return stdout.trim();
}

test('the bundle finds the files beside its sources, and begins no program that it only starts', () => {
  const folder = path.dirname(bundled());
  const files = readdirSync(folder);
  const code = files.map((name) => readFileSync(path.join(folder, name), 'utf8')).join('\n');
  const places = [...code.matchAll(/new URL\("([^"]+)", import\.meta\.url\)\.href/g)].map(([, place]) => place!);
  expect(places.length).toBeGreaterThan(10);
  expect(places.filter((place) => !existsSync(path.join(folder, place)))).toEqual([]);
  const others = code
    .replaceAll(/new URL\("([^"]+)", import\.meta\.url\)\.href/g, '')
    .replaceAll(/getBuiltinModule\(['"]node:path['"]\)\.join\(import\.meta\.dirname, "[^"]+"\)/g, '');
  expect(others).not.toMatch(/import\.meta\.(url|dirname|main)/);
});

test('the bundle is made once, and is the program', async () => {
  const main = bundled();
  expect(bundled()).toBe(main);
  expect(await runProgram(['version'], settings, main)).toEqual(await runProgram(['version'], settings));
  const service = await startService(settings, { main });
  expect((await fetch(`${service.url}/openapi.json`)).status).toBe(200);
});
