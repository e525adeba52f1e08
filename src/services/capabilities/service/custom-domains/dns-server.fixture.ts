import { createSocket } from 'node:dgram';
import { isIPv6 } from 'node:net';

/** Record that the server returns for a name. `silent` never answers, `broken` answers SERVFAIL. */
type DnsRecord = { cname: string } | { addresses: string[] } | { txt: string[] } | 'silent' | 'broken';

export interface DnsServer {
  /** `address:port`. */
  address: string;
  /** Names in lower case; may be changed at any time. */
  records: Map<string, DnsRecord>;
  close(): Promise<void>;
}

const A = 1;
const CNAME = 5;
const TXT = 16;
const AAAA = 28;

/** A DNS server on loopback that knows A, AAAA, CNAME and TXT records (RFC 1035 §4). */
export async function startDnsServer(): Promise<DnsServer> {
  const records = new Map<string, DnsRecord>();
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const reply = answer(query, records);
    if (reply) socket.send(reply, from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    records,
    close: () => new Promise((resolve) => socket.close(resolve)),
  };
}

function answer(query: Buffer, records: Map<string, DnsRecord>): Buffer | undefined {
  const { name, end } = readName(query);
  const type = query.readUInt16BE(end);
  const record = records.get(name.toLowerCase());
  if (record === 'silent') return undefined;
  const found = record === 'broken' ? [] : collect(name.toLowerCase(), type, records);
  const code = record === 'broken' ? 2 : record === undefined ? 3 : 0;
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(found.length, 6);
  return Buffer.concat([header, query.subarray(12, end + 4), ...found]);
}

/** Resource records that answer a question, at most four CNAMEs followed for addresses. */
function collect(name: string, type: number, records: Map<string, DnsRecord>, hops = 4): Buffer[] {
  const record = records.get(name);
  if (!record || typeof record === 'string' || hops === 0) return [];
  if ('cname' in record) {
    const alias = resource(name, CNAME, writeName(record.cname));
    return type === CNAME ? [alias] : [alias, ...collect(record.cname, type, records, hops - 1)];
  }
  if ('txt' in record) return type === TXT ? record.txt.map((text) => resource(name, TXT, characterString(text))) : [];
  return record.addresses
    .filter((address) => type === (isIPv6(address) ? AAAA : A))
    .map((address) =>
      resource(name, type, isIPv6(address) ? ipv6(address) : Buffer.from(address.split('.').map(Number))),
    );
}

function resource(name: string, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(name), fixed, data]);
}

/** Text of at most 255 bytes, which is all that tests need. */
const characterString = (text: string): Buffer => Buffer.concat([Buffer.from([text.length]), Buffer.from(text)]);

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

const writeName = (name: string): Buffer =>
  Buffer.concat([
    ...name.split('.').map((label) => Buffer.from([label.length, ...Buffer.from(label)])),
    Buffer.alloc(1),
  ]);

/** Only addresses written with `::` once and at most 8 groups, which is all that tests need. */
function ipv6(address: string): Buffer {
  const [head = '', tail = ''] = address.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => parseInt(group, 16)));
  const [first, last] = [groups(head), groups(tail)];
  const all = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 255]));
}
