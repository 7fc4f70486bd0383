import assert from "node:assert/strict";

import { families, load, version } from "lance-vectors";

assert.ok(families().includes("crc"));
for (const family of families()) {
  const found = load(family);
  const tests = found.testGroups.flatMap((group) => group.tests);
  assert.equal(found.corpus, version);
  assert.equal(tests.length, found.numberOfTests, family);
}
