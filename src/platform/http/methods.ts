import type { Route } from '#platform/http/route.ts';

/** Methods that paths take; asked only for requests that no route takes. */
export class MethodsOfPaths {
  readonly #byLength = new Map<number, { segments: string[]; method: string }[]>();

  constructor(routes: Pick<Route, 'path' | 'method'>[]) {
    for (const { path, method } of [...routes, { path: '/', method: 'GET' }]) {
      const segments = path.split('/');
      const alike = this.#byLength.get(segments.length) ?? [];
      alike.push({ segments, method });
      this.#byLength.set(segments.length, alike);
    }
  }

  /** Methods of the routes that a URL could name, in alphabetical order; none where it leads nowhere. */
  methodsOf(url: string): string[] {
    const asked = url.split('?')[0]!.split('/');
    const matching = (this.#byLength.get(asked.length) ?? []).filter(({ segments }) =>
      segments.every((segment, at) => (segment.startsWith('{') ? asked[at] !== '' : segment === asked[at])),
    );
    return [...new Set(matching.map(({ method }) => method))].sort();
  }
}
