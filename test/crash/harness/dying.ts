import pg from 'pg';

/** Kill point at which a worker process kills itself. */
export interface Death {
  /** Number of the kill point, counted from 1 after the start; 0 for never. */
  dieAt: number;
  /**
   * Counts each statement. Otherwise statements between the begin of a transaction and its commit do not count: dying at any of them rolls
   * back alike.
   */
  every: boolean;
}

/** Kill points of this process: statements that it sends, and calls of watched objects. */
export interface Doings {
  /** Marks a kill point. */
  doing(what: string): void;
  /** Returns the same object, whose asynchronous methods are kill points at their end. */
  watched<T extends object>(name: string, object: T): T;
  /** Counts kill points from now on. */
  begin(): void;
}

/** Kills this process (SIGKILL) at its n-th kill point. Prints the kill point, so that a failed test can tell where it was. */
export function dieAtOneOf({ dieAt, every }: Death): Doings {
  let count = 0;
  let counting = false;
  const doing = (what: string): void => {
    if (!counting || ++count !== dieAt) return;
    process.stdout.write(`dies at ${count}: ${what.slice(0, 300)}\n`);
    process.kill(process.pid, 'SIGKILL');
  };
  countStatements(every, doing);
  return {
    doing,
    begin: () => void (counting = true),
    watched: (name, object) =>
      new Proxy(object, {
        get(target, key) {
          const value = Reflect.get(target, key, target) as unknown;
          if (typeof value !== 'function') return value;
          return (...args: unknown[]) => {
            const answer = value.apply(target, args) as unknown;
            if (!(answer instanceof Promise)) return answer;
            return answer.finally(() => doing(`${name}.${String(key)} has ended`));
          };
        },
      }),
  };
}

function countStatements(every: boolean, doing: (what: string) => void): void {
  const query = pg.Client.prototype.query as (...args: any[]) => any;
  const inTransaction = new WeakSet<pg.Client>();
  pg.Client.prototype.query = function (this: pg.Client, first: any, ...rest: any[]) {
    const statement: string = typeof first === 'string' ? first : first.text;
    const ends = /^(commit|rollback)/i.test(statement);
    if (every || ends || !inTransaction.has(this)) doing(statement);
    if (ends) inTransaction.delete(this);
    else if (/^(begin|start)/i.test(statement)) inTransaction.add(this);
    return query.call(this, first, ...rest);
  } as never;
}
