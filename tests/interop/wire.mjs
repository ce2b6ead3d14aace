// SPDX-License-Identifier: Apache-2.0
// Just enough protobuf wire format to change a manifest: a message is a list of [field, wire type, value], where a value
// is a BigInt (type 0), a Buffer (type 2) or the raw bytes (types 1 and 5).
export function parse(bytes) {
  const out = [];
  let i = 0;
  const varint = () => {
    for (let v = 0n, shift = 0n; ; shift += 7n) {
      const c = bytes[i++];
      v |= BigInt(c & 127) << shift;
      if (c < 128) return v;
    }
  };
  while (i < bytes.length) {
    const key = varint(),
      field = Number(key >> 3n),
      type = Number(key & 7n);
    if (type === 0) {
      out.push([field, type, varint()]);
      continue;
    }
    const n = type === 2 ? Number(varint()) : type === 1 ? 8 : 4;
    out.push([field, type, bytes.subarray(i, i + n)]);
    i += n;
  }
  return out;
}

function varint(value) {
  const out = [];
  let v = BigInt.asUintN(64, BigInt(value));
  do {
    out.push(Number(v & 127n) | (v > 127n ? 128 : 0));
    v >>= 7n;
  } while (v);
  return Buffer.from(out);
}

export const build = (message) =>
  Buffer.concat(
    message.flatMap(([field, type, v]) => [
      varint((field << 3) | type),
      ...(type === 2 ? [varint(v.length), Buffer.from(v)] : [type === 0 ? varint(v) : v]),
    ]),
  );

// A message from [field, number | string | bytes] pairs.
export const message = (...fields) =>
  build(
    fields.map(([f, v]) =>
      typeof v === "object" || typeof v === "string" ? [f, 2, Buffer.from(v)] : [f, 0, BigInt(v)],
    ),
  );

// Changes field f of message m by fn: all of them, or the one at index; adds it if there is none.
export function edit(m, f, fn, index) {
  let n = 0,
    hit = false;
  const field = (v) => [f, typeof v === "bigint" ? 0 : 2, v];
  const out = m.map((x) => {
    if (x[0] !== f || (n++ !== index && index !== undefined)) return x;
    hit = true;
    return field(fn(x[2]));
  });
  return hit ? out : [...out, field(fn(undefined))];
}

// The manifest file with its message replaced by fn(message); sections before it stay where they are.
export function remade(bytes, fn) {
  const at = Number(bytes.readBigUInt64LE(bytes.length - 16)),
    length = bytes.readUInt32LE(at);
  const changed = fn(parse(bytes.subarray(at + 4, at + 4 + length))),
    body = Buffer.isBuffer(changed) ? changed : build(changed),
    head = Buffer.alloc(4);
  head.writeUInt32LE(body.length);
  return Buffer.concat([bytes.subarray(0, at), head, body, bytes.subarray(bytes.length - 16)]);
}
