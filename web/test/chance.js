// @ts-check
// Random values for properties, the same in every run of a seed. A failure names
// its seed: SEED=n runs that one alone.

const runs = Number(process.env.RUNS ?? 2000);

/** @typedef {ReturnType<typeof chance>} Chance */

/** @param {number} seed */
export function chance(seed) {
  let a = seed >>> 0;
  const next = () => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  return {
    real: (/** @type {number} */ lo, /** @type {number} */ hi) => lo + next() * (hi - lo),
    int: (/** @type {number} */ lo, /** @type {number} */ hi) => lo + Math.floor(next() * (hi - lo + 1)),
    /** @template T @param {readonly T[]} of */
    one: (of) => of[Math.floor(next() * of.length)],
    text(/** @type {number} */ most) {
      const letters = ["a", "b", "a", "a", " ", "ß", "é", "e\u0301", "你", "م", "👍", "👍🏽", "👩‍👩‍👧", "1", "-"];
      return Array.from({ length: this.int(0, most) }, () => this.one(letters)).join("");
    },
  };
}

/** Holds for every one of many random cases. @param {(c: Chance) => void} holds */
export function property(holds) {
  return () => {
    const only = process.env.SEED;
    for (let seed = only ? Number(only) : 1; seed <= (only ? Number(only) : runs); seed++) {
      try {
        holds(chance(seed));
      } catch (e) {
        throw new Error(`with SEED=${seed}: ${/** @type {Error} */ (e).message}`, { cause: e });
      }
    }
  };
}
