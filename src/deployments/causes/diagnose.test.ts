import pg from 'pg';
import { describe, expect, inject, test } from 'vitest';
import { cloneDatabase } from '#test/harness/database.ts';
import { BUILDS, STARTS } from '#test/suites/causes/cases.ts';
import { diagnose, KNOWN_CAUSES } from '#deployments/causes/index.ts';
import type { ErrorCode } from '#deployments/model/errors.ts';

/** Failures as they come about: code, message, and what programs have written. */
const FAILURES: [cause: string, code: ErrorCode, message: string, ...output: string[]][] = [
  ['GIT_ACCESS', 'SOURCE_UNAVAILABLE', 'https://git.example/shop.git cannot be read without credentials: give the service a git token that may read it.'],
  ['REPOSITORY_MISSING', 'SOURCE_UNAVAILABLE', 'There is no repository at https://git.example/shop.git, or it cannot be read without a git token.'],
  ['BRANCH_MISSING', 'SOURCE_UNAVAILABLE', 'https://git.example/shop.git has no branch or tag next; it has main.'],
  ['COMMIT_MISSING', 'SOURCE_UNAVAILABLE', 'Commit 0123456789 is not in the branch main of https://git.example/shop.git.'],
  ['GIT_FOLDER_MISSING', 'SOURCE_UNAVAILABLE', 'web is not a folder of https://git.example/shop.git in that commit.'],
  ['GIT_LFS', 'SOURCE_UNAVAILABLE', 'https://git.example/shop.git keeps files in Git LFS, and the server answered 404.'],
  ['SUBMODULE', 'SOURCE_UNAVAILABLE', 'Submodules are nested more than 5 deep.'],
  ['GIT_HOST_UNKNOWN', 'SOURCE_UNAVAILABLE', "https://git.example/shop.git cannot be reached: fatal: unable to access 'https://git.example/shop.git/': Could not resolve host: git.example"],
  ['GIT_UNREACHABLE', 'SOURCE_UNAVAILABLE', 'https://git.example/shop.git did not answer within 60 s.'],
  ['UPLOAD_GONE', 'SOURCE_UNAVAILABLE', 'The uploaded folder 0123456789 is no longer kept: upload it again.'],
  ['REGISTRY_RATE_LIMIT', 'FAILED', 'The image nginx:1 cannot be pulled. The engine says: toomanyrequests: You have reached your unauthenticated pull rate limit.'],
  ['REGISTRY_ACCESS', 'FAILED', 'The registry registry.example wants credentials for registry.example/shop:1, or does not have it: choose a container registry with a user name and a password. The engine says: unauthorized'],
  ['IMAGE_MISSING', 'FAILED', 'The registry registry.example does not have the image registry.example/shop:9 (any more): check its name, and whether it was pushed or removed. The engine says: manifest unknown'],
  ['IMAGE_PLATFORM', 'FAILED', 'The registry docker.io does not have the image shop:1 (any more): check its name. The engine says: no matching manifest for linux/arm64/v8 in the manifest list entries'],
  ['IMAGE_REMOVED', 'FAILED', 'The image sha256:0123 is not on this machine any more; deploy again.'],
  ['REGISTRY_UNREACHABLE', 'FAILED', 'The registry registry.example cannot be reached by the container engine: check its address, the network and its certificate. The engine says: dial tcp 192.0.2.1:443: i/o timeout'],
  ['BUILD_TIME', 'FAILED', 'The build took longer than 30 min and was ended.'],
  ['IMAGE_SIZE', 'BUILD_FAILED', 'The image takes 9 GiB, more than the 4 GiB that the operator allows.'],
  ['BUILD_PATH_OUTSIDE', 'BUILD_FAILED', '"Dockerfile" leads out of the repository.'],
  ['PACKAGE_INTEGRITY', 'BUILD_FAILED', 'RUN: It ended with status 1.', 'npm error code EINTEGRITY'],
  ['PACKAGE_CONFLICT', 'BUILD_FAILED', 'RUN: It ended with status 1.', 'npm error code ERESOLVE', 'npm error ERESOLVE could not resolve'],
  ['COMPILE', 'BUILD_FAILED', 'RUN: It ended with status 2.', "src/shop.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'."],
  ['TOO_MANY_PROCESSES', 'NOT_READY', 'Instance 1 did not get ready: it ended 5 times: ended with status 1.', "RuntimeError: can't start new thread"],
  ['PORT_PRIVILEGED', 'NOT_READY', 'Instance 1 did not get ready: it ended 5 times: ended with status 1.', 'Error: listen EACCES: permission denied 0.0.0.0:80'],
  ['LIBRARY_MISSING', 'NOT_READY', 'Instance 1 did not get ready: it ended 5 times: ended with status 127.', 'shop: error while loading shared libraries: libssl.so.3: cannot open shared object file: No such file or directory'],
  ['DATABASE_STARTING', 'NOT_READY', 'Instance 1 did not get ready: it ended 5 times: ended with status 1.', 'FATAL: the database system is starting up'],
  ['DATABASE_CONNECTIONS', 'NOT_READY', 'Instance 1 did not get ready: it ended 5 times: ended with status 1.', 'FATAL: sorry, too many clients already'],
  ['CONNECTION_TIMEOUT', 'NOT_READY', 'Instance 1 did not get ready: it ended 5 times: ended with status 1.', 'Error: connect ETIMEDOUT 192.0.2.1:443'],
  ['READ_ONLY', 'NOT_READY', 'web-1 was not ready within 300 s: it ended with status 1. Last lines of its log:', "Error: EROFS: read-only file system, open '/app/made'"],
  ['NO_ROOM', 'NOT_READY', 'web-1 was not ready within 300 s: no node takes it: 0/1 nodes are available: 1 Insufficient cpu. It wrote no log.'],
  ['PORT_PUBLISHED', 'NOT_READY', 'These ports cannot be published: 5432.'],
  ['CHECK_STATUS', 'NOT_READY', 'Instance 1 did not get ready: GET /health answered 500.'],
  ['CHECK_SILENT', 'NOT_READY', 'Instance 1 did not get ready: GET /health: no answer within 1000 ms.'],
  ['CHECK_COMMAND', 'NOT_READY', 'web-1 was not ready within 300 s: pg_isready did not end within 1 s. It wrote no log.'],
  ['CHECK_FAILED', 'NOT_READY', 'web-1 was not ready within 300 s: its checks do not pass. It wrote no log.'],
  ['NOT_LISTENING', 'NOT_READY', 'Instance 1 did not get ready: it listens neither on 21000 (its PORT) nor on 3000.'],
  ['VARIABLE_SOURCE_GONE', 'VARIABLES_INVALID', "A is an alias of something that isn't there any more: delete the alias, or bring its source back."],
  ['VARIABLE_CYCLE', 'VARIABLES_INVALID', 'A, B refer to each other in a circle.'],
  ['VARIABLE_FILE_PATH', 'VARIABLES_INVALID', 'A and B are different files with the path /etc/a: give one of them another mount_path.'],
  ['SECRET_MANAGER', 'VARIABLES_INVALID', 'A is the external secret "db", and its secret manager can\'t be asked for it.'],
  ['ENGINE_AWAY', 'CLUSTER_UNAVAILABLE', 'No Docker Engine or Podman answers on this machine: start it, or set DOCKER_HOST.'],
  ['CLUSTER_GONE', 'CLUSTER_UNABLE', 'The cluster is gone.'],
  ['MACHINE_DISK', 'FAILED', 'ENOSPC: no space left on device, mkdir /var/lib/quarterdeck/checkouts/1'],
  ['ADDRESSES_USED_UP', 'FAILED', 'All 253 addresses of the environment are taken.'],
  ['FOREIGN_OBJECT', 'CLUSTER_UNABLE', 'A network qd-1 is there that is not ours. Remove or rename it.'],
  ['RELEASE_OLD', 'CLUSTER_UNABLE', 'This release was made by the runtime host (format 1): deploy it again.'],
  ['NO_PROGRESS', 'FAILED', 'DEPLOYMENT showed no progress for 900 seconds and was ended.'],
  ['NOT_THERE_IN_TIME', 'FAILED', 'What BUILD needs was not there within 900 seconds.'],
  ['NOT_RUNNING', 'FAILED', 'web is not running: deploy it first.'],
  ['DISK_ALLOWANCE', 'DISK_LIMIT', 'The organization takes 11 GiB of the machine, more than the 10 GiB that the operator allows.'],
  ['COMMAND_TIME', 'EXECUTION_FAILED', 'migrate-1 took longer than 60 seconds and was ended.'],
  ['COMMAND_LOST', 'EXECUTION_FAILED', "migrate-1 was begun and its end can't be known: the machine was restarted."],
  ['COMMAND_KILLED', 'EXECUTION_FAILED', 'migrate-1 was ended by SIGKILL.'],
  ['COMMAND_FAILED', 'EXECUTION_FAILED', 'migrate-1 ended with status 3.'],
]; // prettier-ignore

/** Causes that a real PostgreSQL shows below. */
const OF_DATABASE = ['DATABASE_LOGIN', 'DATABASE_MISSING', 'DATABASE_SCHEMA'];

test.each(FAILURES)('%s is the cause of what has it', (cause, code, message, ...output) => {
  expect(diagnose({ code, message, output })).toMatchObject({ code: cause, ...(output.length > 0 ? { lines: output } : {}) });
}); // prettier-ignore

test('each known cause is provoked by a test', () => {
  const provoked = [...FAILURES.map(([cause]) => cause), ...[...BUILDS, ...STARTS].map(({ cause }) => cause)];
  expect([...new Set([...provoked, ...OF_DATABASE])].toSorted()).toEqual(Object.keys(KNOWN_CAUSES).toSorted());
});

describe('what PostgreSQL answers', () => {
  const causeOf = async (change: pg.ClientConfig, query = 'select 1') => {
    await using clone = await databaseOf();
    const client = new pg.Client({ ...clone.config, ...change });
    const error = await client.connect().then(
      () => client.query(query),
      (failure: unknown) => failure,
    ).catch((failure: unknown) => failure); // prettier-ignore
    await client.end().catch(() => undefined);
    const message = 'Instance 1 did not get ready: it ended 5 times: ended with status 1.';
    return diagnose({ code: 'NOT_READY', message, output: [`error: ${(error as Error).message}`] })?.code;
  };
  const databaseOf = async () => {
    const clone = await cloneDatabase(inject('postgres'), inject('template'));
    return { ...clone, [Symbol.asyncDispose]: clone.drop };
  };

  test('names its cause', async () => {
    expect(await causeOf({ user: 'nobody-that-is-there' })).toBe('DATABASE_LOGIN');
    expect(await causeOf({ database: 'none' })).toBe('DATABASE_MISSING');
    expect(await causeOf({}, 'select * from orders')).toBe('DATABASE_SCHEMA');
    expect(await causeOf({}, 'select total from deployment')).toBe('DATABASE_SCHEMA');
  });
});

describe('lines', () => {
  const message = 'RUN: It ended with status 1.';
  test('that only warn are no cause', () => {
    const output = ['npm warn EBADENGINE Unsupported engine', 'warning: unknown option'];
    expect(diagnose({ code: 'BUILD_FAILED', message, output })).toMatchObject({ code: 'BUILD_COMMAND', lines: [] });
  });

  test('are the last three different ones, cut, and without what PostgreSQL cannot keep', () => {
    const output = Array.from({ length: 9 }, (_, n) => `Error: Cannot find module 'm${n % 5}' \0${'x'.repeat(900)}`);
    const { lines } = diagnose({ code: 'NOT_READY', message: 'It ended with status 1.', output })!;
    expect(lines.map((line) => /'(m\d)'/.exec(line)![1])).toEqual(['m2', 'm3', 'm4']);
    expect(lines.every((line) => line.length <= 500 && !line.includes('\0'))).toBe(true);
  });

  test('in the message count for what we say ourselves, not for what a program has written', () => {
    const text =
      'Instance 1 did not get ready: it ended 5 times: ended with status 1.\nIts last lines:\n  no node takes it';
    expect(diagnose({ code: 'NOT_READY', message: text, output: [] })!.code).toBe('ENDED_WITH_ERROR');
  });

  test('of nothing that is known have none', () => {
    expect(diagnose({ code: 'FAILED', message: 'It rained.', output: ['wet'] })).toBeNull();
  });
});
