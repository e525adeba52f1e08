/** Splits the value of an option `--mount` into its fields, with their names in lower case. A field without `=` has no value. */
export function fieldsOfMount(mount: string): [name: string, value: string | undefined][] {
  return mount.split(',').map((field) => {
    const at = field.indexOf('=');
    return at < 0
      ? [field.trim().toLowerCase(), undefined]
      : [field.slice(0, at).trim().toLowerCase(), field.slice(at + 1)];
  });
}
