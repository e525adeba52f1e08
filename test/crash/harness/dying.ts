import pg from 'pg';

/** When a worker kills itself. */
export interface Death {
  /** The doing, counted from 1 after the start, at which it dies; 0 for never. */
  dieAt: number;
  /** Counts each statement; else those between the beginning of a transaction and its commit are left out: dying at one rolls back like dying at any. */
  every: boolean;
}

/** Doings of this process: statements that it sends, and calls of objects that are watched. */
export interface Doings {
  /** Something is done here. */
  doing(what: string): void;
  /** The same object, whose asynchronous methods are doings at their end. */
  watched<T extends object>(name: string, object: T): T;
  /** Counts from now on. */
  begin(): void;
}

/** Lets this process die (SIGKILL) at its n-th doing. It says which that was, so that a test that fails can tell where. */
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
