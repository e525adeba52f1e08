/** Refuses a Dockerfile fragment with a FROM, which would begin another image. `image` names the image that the fragment is added to. */
export function refuseFrom(content: string, image: string, failure: (message: string) => Error): void {
  // The blanks exclude line ends: otherwise a text of line ends alone takes quadratic time.
  if (/^[^\S\n\r\u2028\u2029]*FROM\s/im.test(content)) throw failure(`must not have a FROM: it is added to ${image}`);
}
