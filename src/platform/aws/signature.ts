/** Keys of an AWS account, or of a session that assumed a role. */
export interface AwsKeys {
  accessKeyId: string;
  secretAccessKey: string;
  sessionToken?: string | undefined;
}

export interface AwsRequest {
  method: 'GET' | 'POST';
  url: string;
  headers: Record<string, string>;
  body: string;
  region: string;
  /** `ecr`, `secretsmanager`. */
  service: string;
}

/** Returns the headers of a request to AWS with its signature (Signature Version 4). `at` is the time of the request. */
export async function signAws(request: AwsRequest, keys: AwsKeys, at: Date): Promise<Record<string, string>> {
  const { AwsV4Signer } = await import('aws4fetch');
  const datetime = at.toISOString().replace(/[-:]|\.\d{3}/g, '');
  const signer = new AwsV4Signer({ ...request, ...keys, datetime, allHeaders: true });
  return {
    ...request.headers,
    'x-amz-date': datetime,
    ...(keys.sessionToken === undefined ? {} : { 'x-amz-security-token': keys.sessionToken }),
    // Not by `sign()`: it refuses a mistyped key with a text that quotes the signature.
    authorization: await signer.authHeader(),
  };
}
