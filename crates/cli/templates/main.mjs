/** Counts words; arguments come by name, and what is returned is the result. */
export async function run({ text, limit = 10 }) {
  const words = text.split(/\s+/).filter(Boolean).slice(0, limit);
  return { words: words.length };
}
