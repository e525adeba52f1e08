import { invalidField } from '#kernel/errors.ts';
import { newId } from '#kernel/ids.ts';
import { named, OneOf, Type, Uuid, type Static } from '#platform/http/schema.ts';

const MountPoint = Type.String({ minLength: 2, maxLength: 1000, pattern: '^/' });
const Size = Type.Integer({ minimum: 1, maximum: 65_536, description: 'GiB' });

export const StorageRequest = named(
  'StorageRequest',
  Type.Object({
    id: Type.Optional(Uuid),
    type: Type.Optional(OneOf(['FAST_SSD'])),
    size: Size,
    mount_point: MountPoint,
  }),
);
export type StorageInput = Static<typeof StorageRequest>;

export const Storage = named(
  'Storage',
  Type.Object({ id: Uuid, type: OneOf(['FAST_SSD']), size: Size, mount_point: MountPoint }),
);
export type StorageSpec = Static<typeof Storage>;

/** Makes the volumes to store: a volume is identified by its id, else by its mount point. A volume never shrinks. */
export function toStorage(input: StorageInput[], present: StorageSpec[]): StorageSpec[] {
  return input.map((volume, index) => {
    const known =
      present.find((other) => other.id === volume.id) ??
      present.find((other) => other.mount_point === volume.mount_point);
    if (volume.mount_point.split('/').includes('..'))
      throw invalidField(`storage[${index}].mount_point`, 'must not contain ".."');
    if (input.findIndex((other) => other.mount_point === volume.mount_point) !== index)
      throw invalidField(`storage[${index}].mount_point`, `${volume.mount_point} is used twice`);
    if (known && volume.size < known.size)
      throw invalidField(`storage[${index}].size`, `a volume can't shrink: it has ${known.size} GiB`);
    return { id: known?.id ?? newId(), type: 'FAST_SSD' as const, size: volume.size, mount_point: volume.mount_point };
  });
}
