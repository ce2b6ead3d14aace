// SPDX-License-Identifier: Apache-2.0
// Arrow files that no stock engine writes, by the apache-arrow package: LDB=lance10 node tests/unit/data/arrow_variants.mjs
// Each is put in the place of a real deletion file and read by the engine, which says how many of ten rows it sees.
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { engineDir, loadEngine } from "../../interop/engines.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const engine = process.env.LDB ?? "lance10";
const { lancedb, arrow } = loadEngine(engine);
const require = createRequire(import.meta.url);
const modules = path.join(engineDir(engine), "node_modules");
const fb = (name) => require(path.join(modules, `apache-arrow/fb/${name}.js`));
const flatbuffers = require(path.join(modules, "flatbuffers"));

// A schema that says big-endian. Only the flag is: enough to be refused.
function bigEndian() {
  const { Schema } = fb("schema"), old = Schema.addEndianness;
  Schema.addEndianness = (builder) => builder.addFieldInt16(0, 1, 0);
  const bytes = arrow.tableToIPC(table({}), "file");
  Schema.addEndianness = old;
  return bytes;
}

// A stock file whose compression says LZ4_FRAME (0) where it said ZSTD (1).
function lz4(file) {
  const bytes = new Uint8Array(fs.readFileSync(file));
  const footerSize = new DataView(bytes.buffer).getInt32(bytes.length - 10, true);
  const footerBytes = bytes.subarray(bytes.length - 10 - footerSize, bytes.length - 10);
  const footer = fb("footer").Footer.getRootAsFooter(new flatbuffers.ByteBuffer(footerBytes));
  const start = Number(footer.recordBatches(0).offset()) + 8;
  const message = fb("message").Message.getRootAsMessage(new flatbuffers.ByteBuffer(bytes.subarray(start)));
  const compression = message.header(new (fb("record-batch").RecordBatch)()).compression();
  if (compression.codec() !== 1) throw new Error("not ZSTD");
  bytes[start + compression.bb_pos + compression.bb.__offset(compression.bb_pos, 4)] = 0;
  return bytes;
}

function table({ values = [1, 4, 7], name = "row_id", type = new arrow.Uint32(), nullable = false, metadata, schemaMetadata,
                 batches = 1, columns = 1 } = {}) {
  const fields = Array.from({ length: columns }, (_, i) =>
    new arrow.Field(i ? `${name}${i}` : name, type, nullable, metadata && new Map(metadata)));
  const schema = new arrow.Schema(fields, schemaMetadata && new Map(schemaMetadata));
  const vector = arrow.vectorFromArray(values, type);
  const children = fields.map(() => vector.data[0]);
  const data = arrow.makeData({ type: new arrow.Struct(fields), children, length: values.length, nullCount: 0 });
  return new arrow.Table(schema, Array.from({ length: batches }, () => new arrow.RecordBatch(schema, data)));
}

const variants = {
  plain: {},
  duplicates: { values: [4, 1, 7, 4, 1] },
  none: { values: [] },
  name: { name: "rowid" },
  int32: { type: new arrow.Int32() },
  uint64: { type: new arrow.Uint64(), values: [1n, 4n, 7n] },
  nullable: { nullable: true },
  nulls: { values: [1, null, 7] },
  field_metadata: { metadata: [["a", "b"]] },
  schema_metadata: { schemaMetadata: [["a", "b"]] },
  two_batches: { batches: 2 },
  two_columns: { columns: 2 },
  no_batch: { batches: 0 },
  dictionary: { type: new arrow.Dictionary(new arrow.Uint32(), new arrow.Int32()) },
  behind_end: { values: [1, 10] },
};

const files = Object.entries(variants).map(([name, options]) => [name, arrow.tableToIPC(table(options), "file")]);
files.push(["big_endian", bigEndian()], ["lz4", lz4(path.join(here, "lance12-three.arrow"))]);
const dir = fs.mkdtempSync(path.join(os.tmpdir(), "arrow-variants-"));
for (const [name, bytes] of files) {
  fs.writeFileSync(path.join(here, `js-${name}.arrow`), bytes);
  const db = await lancedb.connect(`${dir}/${name}`);
  const t = await db.createTable("t", Array.from({ length: 10 }, (_, id) => ({ id })));
  await t.delete("id IN (1, 4, 7)");
  const deletions = `${dir}/${name}/t.lance/_deletions`;
  fs.writeFileSync(path.join(deletions, fs.readdirSync(deletions)[0]), bytes);
  try {
    const again = await (await lancedb.connect(`${dir}/${name}`)).openTable("t");
    console.log(name, (await again.query().toArray()).length, "rows");
  } catch (error) {
    console.log(name, "refused:", error.message.split("\n")[0].slice(0, 140));
  }
}
fs.rmSync(dir, { recursive: true });
