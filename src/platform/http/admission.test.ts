import { describe, expect, test } from 'vitest';
import { Admission } from '#platform/http/admission.ts';

const limits = { perCaller: 2, perOrganization: 3, writes: 4 };

/** Work that ends when it is told to. */
function held() {
  let end!: () => void;
  const done = new Promise<void>((resolve) => (end = resolve));
  let begun = false;
  return { end, work: () => ((begun = true), done), begun: () => begun };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('requests under way', () => {
  test('of a caller beyond the limit are refused with 429, the number and a time, until one has ended', async () => {
    const admission = new Admission(limits);
    const leave = admission.enter('a', 'x') as () => void;
    void admission.enter('a', 'x');
    await expect(admission.enter('a', 'x')).rejects.toMatchObject({
      code: 'rate_limited',
      headers: { 'Retry-After': '2' },
      message: expect.stringContaining('2 requests under way'),
    });
    leave();
    expect(admission.enter('a', 'x')).toBeTypeOf('function');
  });

  test('of an organization are counted over its callers, and leave other organizations alone', async () => {
    const admission = new Admission(limits);
    for (const caller of ['a', 'a', 'b']) expect(admission.enter(caller, 'x')).toBeTypeOf('function');
    await expect(admission.enter('c', 'x')).rejects.toThrow('Your organization has 3 requests');
    expect(admission.enter('d', 'y')).toBeTypeOf('function');
  });

  test('leave event streams and web sockets alone, which have as many places of their own', async () => {
    const admission = new Admission(limits);
    for (let n = 0; n < 2; n++) expect(admission.enter('a', 'x', 'connections')).toBeTypeOf('function');
    for (let n = 0; n < 2; n++) expect(admission.enter('a', 'x')).toBeTypeOf('function');
    await expect(admission.enter('a', 'x', 'connections')).rejects.toThrow(
      '2 event streams, followed logs and web sockets open',
    );
  });

  test('are not limited by 0', () => {
    const admission = new Admission({ perCaller: 0, perOrganization: 0, writes: 4 });
    for (let n = 0; n < 1000; n++) expect(admission.enter('a', 'x')).toBeTypeOf('function');
  });
});

describe('writes', () => {
  test('of one subject go one after the other, in their order', async () => {
    const admission = new Admission(limits);
    const [first, second] = [held(), held()];
    void admission.write('x', 'service', first.work);
    void admission.write('x', 'service', second.work);
    await turn();
    expect([first.begun(), second.begun()]).toEqual([true, false]);
    first.end();
    await turn();
    expect(second.begun()).toBe(true);
    second.end();
  });

  test('of one organization leave turns to others', async () => {
    const admission = new Admission(limits);
    const mine = [held(), held(), held(), held()];
    mine.forEach((one, at) => void admission.write('x', `service ${at}`, one.work));
    const other = held();
    void admission.write('y', 'service', other.work);
    await turn();
    expect([...mine.map((one) => one.begun()), other.begun()]).toEqual([true, true, false, false, true]);
    for (const one of [...mine, other]) one.end();
    await turn();
    expect(mine.every((one) => one.begun())).toBe(true);
  });

  test('that fail give their turn on', async () => {
    const admission = new Admission(limits);
    await expect(admission.write('x', 's', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    expect(await admission.write('x', 's', async () => 'done')).toBe('done');
  });

  test('beyond the 500 of an organization that may wait are refused with 503', async () => {
    const admission = new Admission(limits);
    const first = held();
    const all = Array.from({ length: 502 }, () =>
      admission.write('x', 's', first.work).then(
        () => 'done',
        (error: unknown) => error,
      ),
    );
    expect(await all.at(-1)).toMatchObject({ code: 'unavailable', headers: { 'Retry-After': '2' } });
    first.end();
    expect((await Promise.all(all)).filter((one) => one === 'done')).toHaveLength(501);
  });
});

describe('reads', () => {
  test('of whoever is alone all go on at once', async () => {
    const admission = new Admission(limits);
    const mine = Array.from({ length: 50 }, held);
    const done = Promise.all(mine.map((one) => admission.read('x', one.work)));
    await turn();
    expect(mine.every((one) => one.begun())).toBe(true);
    for (const one of mine) one.end();
    await done;
  });

  test('of one organization go on one at a time while another one reads as well', async () => {
    const admission = new Admission(limits);
    await admission.read('y', async () => undefined);
    const mine = Array.from({ length: 5 }, held);
    const done = Promise.all(mine.map((one) => admission.read('x', one.work)));
    const other = held();
    const others = admission.read('y', other.work);
    await turn();
    expect([...mine.map((one) => one.begun()), other.begun()]).toEqual([true, false, false, false, false, true]);
    mine[0]!.end();
    await turn();
    expect(mine.map((one) => one.begun())).toEqual([true, true, false, false, false]);
    for (const one of [...mine, other]) one.end();
    await Promise.all([done, others]);
  });

  test('of an organization with many that wait leave it half of the time while another one asks as well', async () => {
    const admission = new Admission(limits);
    await admission.read('y', async () => undefined);
    const mine = Array.from({ length: 30 }, held);
    const done = Promise.all(mine.map((one) => admission.read('x', one.work)));
    const began = performance.now();
    while (performance.now() - began < 20) await turn();
    await admission.read('y', async () => undefined);
    // After 50 ms a read counts as one that waits for the database, however long the machine held this test up.
    const took = Math.min(performance.now() - began, 50);
    mine[0]!.end();
    while (!mine[1]!.begun()) await turn();
    expect(performance.now() - began).toBeGreaterThanOrEqual(2 * took - 3);
    for (const one of mine) one.end();
    await done;
  });

  test('that wait for the database for long let others of their organization go on', async () => {
    const admission = new Admission(limits);
    await admission.read('y', async () => undefined);
    const slow = [held(), held()];
    const done = Promise.all(slow.map((one) => admission.read('x', one.work)));
    expect(await admission.read('x', async () => 'read')).toBe('read');
    for (const one of slow) one.end();
    await done;
  });
});
