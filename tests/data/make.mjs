// SPDX-License-Identifier: Apache-2.0
// Makes photos.lance, the data set of the demo and of tests, with stock Lance:
//
//     node tests/data/make.mjs ENGINE DIR
//
// ENGINE is a folder whose node_modules holds @lancedb/lancedb 0.37.1 and apache-arrow 18 (tests/interop/setup.sh
// makes one in build/engines/lance10); the data set becomes DIR/photos.lance. Branch manifests hold the absolute path
// of their parent, so DIR stays in the data set as text: the one that is kept here was made in /data.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";

const [engine, dir] = process.argv.slice(2);
if (!engine || !dir || !path.isAbsolute(dir)) {
    console.error("usage: node make.mjs ENGINE DIR    (DIR is an absolute path)");
    process.exit(2);
}
const load = createRequire(path.join(path.resolve(engine), "package.json"));
const lancedb = load("@lancedb/lancedb");
const { Field, FixedSizeList, Float32, Int64, Schema, Utf8 } = load("apache-arrow");

const schema = new Schema([
    new Field("id", new Int64(), false),
    new Field("path", new Utf8(), false),
    new Field("label", new Utf8(), true),
    new Field("score", new Float32(), true),
    new Field("embedding", new FixedSizeList(4, new Field("item", new Float32(), true)), true),
]);

// A photo is [id, path, label]; what a model would have said of it follows from its id, the same in every run.
const photos = (list) =>
    lancedb.makeArrowTable(
        list.map(([id, file, label]) => ({
            id: BigInt(id),
            path: file,
            label,
            score: 0.5 + ((id * 37) % 50) / 100,
            embedding: [1, 2, 3, 4].map((k) => ((id * k * 29) % 200) / 100 - 1),
        })),
        { schema },
    );

const harbour = [
    [1, "harbour/0001.jpg", "boat"], [2, "harbour/0002.jpg", "boat"], [3, "harbour/0003.jpg", "gull"],
    [4, "harbour/0004.jpg", "blurred"], [5, "harbour/0005.jpg", "crane"], [6, "harbour/0006.jpg", "gull"],
    [7, "harbour/0007.jpg", "dog"], [8, "harbour/0008.jpg", "boat"], [9, "harbour/0009.jpg", "buoy"],
    [10, "harbour/0010.jpg", "crane"], [11, "harbour/0011.jpg", "ship"], [12, "harbour/0012.jpg", "gull"],
];
const park = [
    [13, "park/0001.jpg", "tree"], [14, "park/0002.jpg", "bench"], [15, "park/0003.jpg", "blurred"],
    [16, "park/0004.jpg", "dog"], [17, "park/0005.jpg", "tree"], [18, "park/0006.jpg", "heron"],
    [19, "park/0007.jpg", "pond"], [20, "park/0008.jpg", "dog"],
];
const market = [[21, "market/0001.jpg", "fruit"], [22, "market/0002.jpg", "fish"], [23, "market/0003.jpg", "crowd"]];
const station = [
    [31, "station/0001.jpg", "train"], [32, "station/0002.jpg", "clock"],
    [33, "station/0003.jpg", "crowd"], [34, "station/0004.jpg", "train"],
];

const relabel = (table, id, label) => table.update({ where: `id = ${id}`, values: { label } });

fs.rmSync(path.join(dir, "photos.lance"), { recursive: true, force: true });
fs.mkdirSync(dir, { recursive: true });
const db = await lancedb.connect(dir);

// Both sides grow from main's version 2: 20 photos in two fragments.
const main = await db.createTable("photos", photos(harbour));
await main.add(photos(park));
const branches = await main.branches();

const feature = await branches.create("feature");
await feature.add(photos(station));
await feature.delete("id = 15"); // blurred
const relabelled = await branches.create("feature/relabel", "feature");
await relabel(feature, 11, "ferry");

await relabel(relabelled, 16, "terrier");
await relabel(relabelled, 33, "commuters");

await main.add(photos(market));
await main.delete("id = 4"); // blurred too
await relabel(main, 7, "seal");

for (const [name, table] of Object.entries({ main, feature, "feature/relabel": relabelled })) {
    console.log(`${name}: version ${await table.version()}, ${await table.countRows()} rows`);
}
