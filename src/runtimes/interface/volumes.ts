/** Contents of volumes, for the move of an installation to another machine. */

/** Volume with the storage of a service. */
export interface StoredVolume {
  /** Id of the storage. */
  id: string;
  serviceId: string;
  /** Marks of its owner in the form of the runtime; empty if its content has them. */
  labels: Record<string, string>;
}

export interface VolumeContents {
  /** Folder of this machine below which volumes lie; null if they lie elsewhere. */
  folder(): Promise<string | null>;

  /** Lists the volumes of this installation that hold storage of services. */
  list(): Promise<StoredVolume[]>;

  /** Returns why this machine cannot read or write contents, as a sentence that names the remedy; null if it can. */
  refusal(): Promise<string | null>;

  /**
   * Streams a volume as a tar archive, with owners, modes, links, times and extended attributes. Nothing may write to the volume meanwhile.
   * Throws RuntimeError.
   */
  read(volume: StoredVolume, signal: AbortSignal): AsyncIterable<Buffer>;

  /**
   * Makes a volume of what `read` gave; one that is there is replaced. `archive` must have passed `checkedTar`. Throws RuntimeError if it
   * cannot, or belongs to another installation.
   */
  write(volume: StoredVolume, archive: AsyncIterable<Buffer>, signal: AbortSignal): Promise<void>;
}
