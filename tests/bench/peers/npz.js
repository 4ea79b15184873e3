// SPDX-License-Identifier: Apache-2.0
// Reads and writes .npz files: a zip of .npy arrays. Numbers only, little-endian, row-major.
'use strict';

const fs = require('fs');
const zlib = require('zlib');

// dtype of .npy -> [type of ONNX Runtime, typed array, bytes per element].
const TYPES = {
  '|b1': ['bool', Uint8Array, 1],
  '|i1': ['int8', Int8Array, 1],
  '|u1': ['uint8', Uint8Array, 1],
  '<i2': ['int16', Int16Array, 2],
  '<u2': ['uint16', Uint16Array, 2],
  '<i4': ['int32', Int32Array, 4],
  '<u4': ['uint32', Uint32Array, 4],
  '<i8': ['int64', BigInt64Array, 8],
  '<u8': ['uint64', BigUint64Array, 8],
  '<f2': ['float16', Uint16Array, 2],
  '<f4': ['float32', Float32Array, 4],
  '<f8': ['float64', Float64Array, 8],
};

function parseNpy(bytes, name) {
  if (bytes.toString('latin1', 0, 6) !== '\x93NUMPY') throw new Error(`${name} is not a .npy array`);
  const wide = bytes[6] >= 2;
  const start = wide ? 12 : 10;
  const length = wide ? bytes.readUInt32LE(8) : bytes.readUInt16LE(8);
  const header = bytes.toString('latin1', start, start + length);
  const descr = /'descr':\s*'([^']+)'/.exec(header)[1];
  if (!TYPES[descr]) throw new Error(`${name}: arrays of ${descr} are not supported`);
  if (/'fortran_order':\s*True/.test(header)) throw new Error(`${name}: column-major arrays are not supported`);
  const dims = /'shape':\s*\(([^)]*)\)/.exec(header)[1].split(',').filter((d) => d.trim()).map(Number);
  const [type, Typed, width] = TYPES[descr];
  const body = new Uint8Array(bytes.subarray(start + length));  // a copy, so that it starts aligned
  return {type, dims, data: new Typed(body.buffer, 0, body.byteLength / width)};
}

// {name: {type, dims, data}}
function readNpz(path) {
  const file = fs.readFileSync(path);
  let end = file.length - 22;
  while (end >= 0 && file.readUInt32LE(end) !== 0x06054b50) --end;
  if (end < 0) throw new Error(`${path} is not an .npz file`);
  const arrays = {};
  let at = file.readUInt32LE(end + 16);
  for (let left = file.readUInt16LE(end + 10); left > 0; --left) {
    const method = file.readUInt16LE(at + 10);
    const size = file.readUInt32LE(at + 20);
    const nameLength = file.readUInt16LE(at + 28);
    const name = file.toString('utf8', at + 46, at + 46 + nameLength).replace(/\.npy$/, '');
    const local = file.readUInt32LE(at + 42);
    const data = local + 30 + file.readUInt16LE(local + 26) + file.readUInt16LE(local + 28);
    const stored = file.subarray(data, data + size);
    arrays[name] = parseNpy(method === 8 ? zlib.inflateRawSync(stored) : stored, `${path}: ${name}`);
    at += 46 + nameLength + file.readUInt16LE(at + 30) + file.readUInt16LE(at + 32);
  }
  return arrays;
}

const CRC_TABLE = Uint32Array.from({length: 256}, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; ++bit) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

function npyBytes({type, dims, data}) {
  const descr = Object.keys(TYPES).find((key) => TYPES[key][0] === type);
  const shape = dims.length === 1 ? `${dims[0]},` : dims.join(', ');
  let header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape}), }`;
  header = header.padEnd(Math.ceil((header.length + 11) / 64) * 64 - 11) + '\n';
  const start = Buffer.from('\x93NUMPY\x01\x00\x00\x00', 'latin1');
  start.writeUInt16LE(header.length, 8);
  const body = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return Buffer.concat([start, Buffer.from(header, 'latin1'), body]);
}

function writeNpz(path, arrays) {
  const parts = [];
  const directory = [];
  let offset = 0;
  for (const [name, array] of Object.entries(arrays)) {
    const body = npyBytes(array);
    const file = Buffer.from(`${name}.npy`);
    const fields = Buffer.alloc(26);  // what the local and the central header share
    fields.writeUInt16LE(20, 0);
    fields.writeUInt32LE(crc32(body), 10);
    fields.writeUInt32LE(body.length, 14);
    fields.writeUInt32LE(body.length, 18);
    fields.writeUInt16LE(file.length, 22);
    const tail = Buffer.alloc(14);
    tail.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, tail, file);
    parts.push(Buffer.from('PK\x03\x04', 'latin1'), fields, file, body);
    offset += 30 + file.length + body.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Object.keys(arrays).length, 8);
  end.writeUInt16LE(Object.keys(arrays).length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  fs.writeFileSync(path, Buffer.concat([...parts, central, end]));
}

module.exports = {readNpz, writeNpz};
