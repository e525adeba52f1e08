/** Refuses a Dockerfile fragment with a FROM, which would begin another image. `image` names the image that the fragment is added to. */
export function refuseFrom(content: string, image: string, failure: (message: string) => Error): void {
  // Blanks of the line itself only: with line ends among them, a text of nothing else would be searched anew from each.
  if (/^[^\S\n\r\u2028\u2029]*FROM\s/im.test(content)) throw failure(`must not have a FROM: it is added to ${image}`);
}
