// The test vectors: families() names them, load(family) returns one, as README.md describes it.
import { readFileSync, readdirSync } from "node:fs";

const data = new URL("./data/", import.meta.url);

export const version = "@VERSION@";

export const families = () => readdirSync(data).map((name) => name.replace(/\.json$/, "")).sort();

export const load = (family) => JSON.parse(readFileSync(new URL(`${family}.json`, data), "utf8"));
