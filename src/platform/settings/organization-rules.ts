const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export const isUuid = (value: string): boolean => UUID.test(value);

/** Values that each organization may use, as the operator sets them: `*=docker;first=*;<organization id>=docker,host`. */
export class OrganizationRules {
  readonly #text: string;
  readonly #values = new Map<string, string[]>();

  /** Throws an Error that says what would be right. `isValue` tells what may stand in a list, `wanted` says it to people. */
  constructor(text: string, isValue: (value: string) => boolean, wanted: string) {
    this.#text = text;
    for (const rule of text.split(';').filter((part) => part.trim() !== '')) {
      const [organization = '', values, ...more] = rule.split('=').map((part) => part.trim());
      if (values === undefined || more.length > 0 || !(['*', 'first'].includes(organization) || isUuid(organization)))
        throw new Error(
          `${rule.trim()} must be <organization>=<values>, with *, first or the id of an organization; rules are separated by semicolons.`,
        );
      const list = values
        .split(',')
        .map((value) => value.trim())
        .filter((value) => value !== '');
      const wrong = list.find((value) => value !== '*' && !isValue(value));
      if (wrong !== undefined) throw new Error(`${wrong} must be ${wanted}, or * for all.`);
      this.#values.set(organization, list);
    }
  }

  /** Values that an organization may use: by its own rule, else by the one for the first organization, else by the one for all. */
  valuesOf(organizationId: string, isFirst: boolean): string[] {
    const ofFirst = isFirst ? this.#values.get('first') : undefined;
    return this.#values.get(organizationId) ?? ofFirst ?? this.#values.get('*') ?? [];
  }

  allows(organizationId: string, isFirst: boolean, value: string): boolean {
    const values = this.valuesOf(organizationId, isFirst);
    return values.includes('*') || values.includes(value);
  }

  toString(): string {
    return this.#text;
  }
}
