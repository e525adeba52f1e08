import { crc32, deflateRawSync } from 'node:zlib';

/** A file of an archive. */
export interface ArchiveFile {
  name: string;
  content: string;
}

const UTF8_NAMES = 0x0800;
const DEFLATE = 8;
/** The earliest that the format knows (1980-01-01): the same files make the same archive. */
const DATE = 0x0021;
const VERSION = 20;

/** A ZIP archive (APPNOTE 6.3) of a few small files. */
export function zip(files: ArchiveFile[]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const file of files) {
    const [name, content] = [Buffer.from(file.name), Buffer.from(file.content)];
    const body = deflateRawSync(content);
    const common = commonOf(crc32(content), body.length, content.length, name.length);
    const local = Buffer.concat([words(0x04034b50), common, name, body]);
    directory.push(centralOf(common, offset, name));
    parts.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 8);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, central, end]);
}

/** What a file's own header and its entry in the directory have in common. */
function commonOf(crc: number, packed: number, plain: number, nameLength: number): Buffer {
  const header = Buffer.alloc(26);
  header.writeUInt16LE(VERSION, 0);
  header.writeUInt16LE(UTF8_NAMES, 2);
  header.writeUInt16LE(DEFLATE, 4);
  header.writeUInt16LE(DATE, 8);
  header.writeUInt32LE(crc, 10);
  header.writeUInt32LE(packed, 14);
  header.writeUInt32LE(plain, 18);
  header.writeUInt16LE(nameLength, 22);
  return header;
}

function centralOf(common: Buffer, offset: number, name: Buffer): Buffer {
  const entry = Buffer.alloc(14);
  entry.writeUInt32LE(offset, 10);
  const madeBy = Buffer.alloc(2);
  madeBy.writeUInt16LE(VERSION, 0);
  return Buffer.concat([words(0x02014b50), madeBy, common, entry, name]);
}

function words(signature: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeUInt32LE(signature, 0);
  return buffer;
}
