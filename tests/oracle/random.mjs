// SPDX-License-Identifier: Apache-2.0
// Numbers that look random and depend on a seed alone.

// 32 bits in, 32 well mixed bits out.
function mix(x) {
  x = Math.imul(x ^ (x >>> 16), 0x21f0aaad);
  x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
  return (x ^ (x >>> 15)) >>> 0;
}

// A generator for a seed and any further numbers: the same ones give the same sequence.
export function random(...seed) {
  let state = seed.reduce((s, n) => mix((s ^ n) + 0x9e3779b9), 0x2545f491);
  const next = () => mix((state = (state + 0x9e3779b9) >>> 0)) / 2 ** 32;
  const int = (from, to) => from + Math.floor(next() * (to - from + 1));
  const pick = (list) => list[int(0, list.length - 1)];
  return {
    int, // both ends included
    pick,
    chance: (p) => next() < p,
    // One key of { key: weight }.
    weighted(weights) {
      const entries = Object.entries(weights).filter(([, w]) => w > 0);
      let left = next() * entries.reduce((sum, [, w]) => sum + w, 0);
      for (const [key, w] of entries) if ((left -= w) < 0) return key;
      return entries.at(-1)[0];
    },
    // n of the list, in its order.
    some(list, n) {
      const left = [...list],
        out = [];
      while (out.length < n && left.length) out.push(left.splice(int(0, left.length - 1), 1)[0]);
      return list.filter((x) => out.includes(x));
    },
  };
}
