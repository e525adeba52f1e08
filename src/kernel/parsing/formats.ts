/** Instruction of a Dockerfile, not yet expanded. */
export interface DockerfileInstruction {
  /** Line of the file, from 1. */
  line: number;
  keyword: string;
  /** Values by name, in the order written. */
  flags: Record<string, string[]>;
  /** Arguments with continued lines joined and comments gone. */
  text: string;
  /** Elements of an exec form (`["node", "server.js"]`); null for text. */
  json: string[] | null;
  /** Here-documents by name, in order; `literal` when the name is quoted. */
  heredocs: { name: string; content: string; literal: boolean }[];
}

export interface DockerfileText {
  escape: string;
  instructions: DockerfileInstruction[];
}

export interface DockerfileFacts {
  /** Names that ARG declares, in their order. */
  args: string[];
  /** Ids of the secrets that RUN mounts (`--mount=type=secret,id=TOKEN`), in their order. */
  secrets: string[];
  /** Images that it is based on or copies from, without tags; its own stages and `scratch` left out. */
  repositories: string[];
}

/** Place of a Dockerfile that names an image which the file does not make itself. Lines count from 0. */
export interface ImageReference {
  /** First and last line of the instruction. */
  lines: { first: number; last: number };
  /** Text in the file. */
  written: string;
  /** Name of the image: the text with its variables replaced. */
  name: string;
  where: 'FROM' | '--from' | '--mount';
  /** Value of `--platform`; null without. */
  platform: string | null;
}

export interface ReachOptions {
  /** Build arguments and the variables of the platform. */
  variables: Record<string, string>;
  /** True if the builder keeps caches of `RUN --mount=type=cache` apart by organization. */
  separatesCaches: boolean;
  /** True if the builder knows here-documents. */
  hereDocuments: boolean;
}

/** Images and sources that a Dockerfile takes from outside of its build context, as a shared builder reads it. */
export interface DockerfileReach {
  escape: '\\' | '`';
  /** Lines of the file without their ends. */
  lines: string[];
  /** Number of comment lines at the beginning, where builders look for directives. */
  directives: number;
  /** Name of the frontend that a `# syntax=` directive asks for; null without one. */
  syntax: string | null;
  images: ImageReference[];
  /** Stages, and `scratch`, that a FROM names by variables, quotes or escapes. */
  aliases: Omit<ImageReference, 'platform'>[];
  /** Hosts that ADD fetches from. */
  hosts: { host: string; line: number }[];
  /** Last lines of the FROM instructions. */
  stageLines: number[];
  /** True if an instruction is ONBUILD. */
  hasTriggers: boolean;
}

export interface YamlOptions {
  /** Aliases that are followed. */
  maxAliasCount: number;
  /** True if every scalar stays text. */
  plain?: boolean;
  /** True if `<<` merges maps. */
  merge?: boolean;
  /** Older version, where `yes` and `on` are truth values; 1.2 without. */
  version?: '1.1';
}

/**
 * Parts of a text of JSON that its reader needs: a scalar with at most 4,000 characters (`true`), a text of any length, any value as JSON,
 * the items of a list, at most so many, or fields of an object.
 */
export type Shape =
  true | 'text' | 'json' | readonly [item: Shape, most?: number] | { readonly [field: string]: Shape };

export const isListShape = (shape: Shape): shape is readonly [item: Shape, most?: number] => Array.isArray(shape);

/** Values that are kept of a text of JSON by a shape: each may be absent, and null in lists. */
export type Shaped<S extends Shape> = S extends true
  ? string | number | boolean
  : S extends 'text' | 'json'
    ? string
    : S extends readonly [infer Item extends Shape, number?]
      ? (Shaped<Item> | null)[]
      : { [Field in keyof S]?: S[Field] extends Shape ? Shaped<S[Field]> : never };

export interface ShapeOptions {
  shape: Shape;
  /** True if a key of the shape that is repeated or in another case is refused. */
  refusesAmbiguousKeys?: boolean;
}

/** Value that the output file of an execution names. */
export interface JobOutput {
  key: string;
  value: string;
  isSecret: boolean;
  description: string | null;
  /** Absolute path; makes it a file. */
  mountPath: string | null;
}

export interface StateOptions {
  /** Values that no resource and no plan may show. */
  secrets: readonly string[];
}

/** Lists of a state, each as parts of JSON (`readParts`). */
export interface StateReading {
  /** `StateResource` of each resource, without sensitive values. */
  resources: string[];
  /** Name, whether it is sensitive, and value: what is no text is written as JSON. */
  outputs: string[];
}

/** Plan and state that a run of Terraform leaves. */
export interface TerraformAnswer {
  /** True if plan and state were too large to be answered. */
  tooLarge: boolean;
  /** JSON of the plan without sensitive values. */
  plan: string | null;
  /** State after the run; null if there is none, or if it is encrypted. */
  state: StateReading | null;
}

/** Lists of an Argo CD's API. */
export type ArgoCdList = 'applications' | 'clusters' | 'resources';

/** Kind and environment of an object that a chart writes. */
export interface ChartObjectOptions {
  /** Path of the group's version: `/api/v1`, `/apis/apps/v1`. */
  group: string;
  /** Name of the kind in paths: `secrets`. */
  resource: string;
  /** Namespace of the environment. */
  namespace: string;
}

/** Facts of an object by which it is decided whether a chart may write it. */
export interface ChartObject {
  name: string | null;
  isHook: boolean;
  /** True if helm would take it for a revision of a release. */
  isRevision: boolean;
  /** Label that marks something as the control plane's own; null without one. */
  foreignLabel: string | null;
  /** Reason for which it leads out of the environment; null if it does not. */
  escalation: string | null;
}

/** Comparison of a manifest for Kubernetes. */
export interface ManifestOptions {
  /** Text of the manifest before; empty for none. */
  before: string;
}

/** Reading of an uploaded folder. */
export interface ArchiveOptions {
  /** New file for the commit, in the format of `git fast-import`. */
  output: string;
  author: string;
  /** Date of the commit in Unix seconds. */
  seconds: number;
  message: string;
  /** Limits of the unpacked bytes, and of the number of files. */
  mostBytes: number;
  mostFiles: number;
}

/** Number of files of a folder, and their size in bytes. */
export interface ArchiveContent {
  files: number;
  bytes: number;
}

export interface GlobOptions {
  paths: string[];
}

/** Signatures that passkeys make (COSE): EdDSA, ES256, RS256. */
export const PASSKEY_ALGORITHMS = [-8, -7, -257] as const;

/** Request for a passkey that a browser has answered. Bytes are base64url. */
export interface CeremonyOptions {
  challenge: string;
  /** Origin of the page. */
  origin: string;
  /** Host of the page, to which passkeys are bound. */
  rpId: string;
}

export interface AssertionOptions extends CeremonyOptions {
  publicKey: string;
  /** Signatures that the authenticator had counted before. */
  signCount: number;
}

/** Passkey that was made. Bytes are base64url. */
export interface MadePasskey {
  credentialId: string;
  /** COSE_Key. */
  publicKey: string;
  signCount: number;
  /** True if its authenticator copies it to other devices of the person. */
  isSynced: boolean;
}

/** Kinds of files with the input and output of their parsers. All of it is data that a thread can pass on. */
export interface Formats {
  yaml: { options: YamlOptions; result: unknown };
  json: { options: null; result: unknown };
  /** JSON, which is answered as YAML. */
  'json-to-yaml': { options: null; result: string };
  /** Blocks, labels and attributes of Terraform's language; expressions stand as templates (`${var.a}`). */
  hcl: { options: null; result: unknown };
  /** TOML; its dates are texts. */
  toml: { options: null; result: unknown };
  dockerfile: { options: null; result: DockerfileText };
  'dockerfile-reach': { options: ReachOptions; result: DockerfileReach };
  /** Facts of a Dockerfile; null for a text without FROM. */
  'dockerfile-facts': { options: null; result: DockerfileFacts | null };
  /** Tells a state of Terraform in the clear from an encrypted one. */
  'terraform-state': { options: null; result: 'plain' | 'encrypted' };
  /** Resources and outputs of a state; null if it is encrypted. */
  'terraform-content': { options: StateOptions; result: StateReading | null };
  'terraform-answer': { options: StateOptions; result: TerraformAnswer };
  /** Named parts of a text of JSON. */
  'json-shape': { options: ShapeOptions; result: unknown };
  'job-outputs': { options: null; result: JobOutput[] };
  /** Items of a list of an Argo CD, as parts of JSON. */
  'argo-cd': { options: { list: ArgoCdList }; result: string[] };
  /** References of a JSON schema to something outside of its file. */
  'chart-schema': { options: null; result: string[] };
  /** Object that a chart writes to a cluster. */
  'chart-object': { options: ChartObjectOptions; result: ChartObject };
  /** Manifest for Kubernetes; answers what is different from the one before, line by line, as parts of JSON. */
  manifest: { options: ManifestOptions; result: string[] };
  /** Versions of charts by name, each list as the text of a JSON array: a whole index may have a hundred thousand. */
  'chart-index': { options: null; result: Map<string, string> };
  /** Tar archive of a folder. Its text is the path of the file that holds it: archives are too large to be passed between threads. */
  'source-archive': { options: ArchiveOptions; result: ArchiveContent };
  /** Patterns of paths, as a JSON array; answers the paths that they match. */
  globs: { options: GlobOptions; result: string[] };
  /** Answer of a browser that has made a passkey, as JSON. */
  'passkey-registration': { options: CeremonyOptions; result: MadePasskey };
  /** Answer of a browser that has signed with a passkey, as JSON; answers the new count of signatures. */
  'passkey-assertion': { options: AssertionOptions; result: number };
}

export type Format = keyof Formats;

export interface FileLimits {
  /** Limit of the file, in bytes. */
  bytes: number;
  milliseconds: number;
  /** Memory of JavaScript's values in the thread. */
  megabytes: number;
}

const KIB = 1024;

/**
 * Limits of size, time and memory for a file of each format. The times hold on a busy machine too: legitimate files take a tenth of them.
 */
export const LIMITS: Record<Format, FileLimits> = {
  yaml: { bytes: 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  json: { bytes: 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  'json-to-yaml': { bytes: 2 * 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  hcl: { bytes: 512 * KIB, milliseconds: 5_000, megabytes: 256 },
  toml: { bytes: 256 * KIB, milliseconds: 5_000, megabytes: 256 },
  dockerfile: { bytes: 256 * KIB, milliseconds: 5_000, megabytes: 256 },
  'dockerfile-reach': { bytes: 256 * KIB, milliseconds: 5_000, megabytes: 256 },
  'dockerfile-facts': { bytes: 256 * KIB, milliseconds: 5_000, megabytes: 256 },
  'terraform-state': { bytes: 64 * 1024 * KIB, milliseconds: 30_000, megabytes: 1_200 },
  'terraform-content': { bytes: 64 * 1024 * KIB, milliseconds: 30_000, megabytes: 1_200 },
  'terraform-answer': { bytes: 2 * 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  'json-shape': { bytes: 4 * 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  'job-outputs': { bytes: 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  'argo-cd': { bytes: 16 * 1024 * KIB, milliseconds: 30_000, megabytes: 1_200 },
  'chart-schema': { bytes: 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  'chart-object': { bytes: 4 * 1024 * KIB, milliseconds: 5_000, megabytes: 256 },
  manifest: { bytes: 8 * 1024 * KIB, milliseconds: 30_000, megabytes: 1_200 },
  'chart-index': { bytes: 16 * 1024 * KIB, milliseconds: 30_000, megabytes: 1_200 },
  'source-archive': { bytes: 4 * KIB, milliseconds: 120_000, megabytes: 256 },
  globs: { bytes: 64 * KIB, milliseconds: 2_000, megabytes: 256 },
  'passkey-registration': { bytes: 64 * KIB, milliseconds: 5_000, megabytes: 256 },
  'passkey-assertion': { bytes: 64 * KIB, milliseconds: 5_000, megabytes: 256 },
};

/** Longest result, as JSON: the thread that asked takes a moment for each byte of it. */
export const MAX_RESULT_BYTES = 2 * 1024 * KIB;

export interface Question {
  format: Format;
  /** Text, or its bytes in UTF-8: text of many megabytes takes the thread that asks long to decode. */
  text: string | Uint8Array;
  options: unknown;
}

/** `problem` is what is wrong with the file. `broken` says that the parser may be in no state to go on. */
export type Reply =
  { json: string } | { result: unknown } | { problem: string; kind: 'fault' | 'limit'; broken?: boolean };
