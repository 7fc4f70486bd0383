// Answers `vectors check --exec "node node_adapter.mjs"` for a codec in JavaScript: an example of
// an adapter in another language. The code under test would be imported; here it stands below.
import { createInterface } from "node:readline";

const POLYNOMIAL = { crc32c: 0x82f63b78, ieee: 0xedb88320 };

function crc(algorithm, bytes) {
  let register = 0xffffffff;
  for (const byte of bytes) {
    register ^= byte;
    for (let bit = 0; bit < 8; bit++) {
      register = (register >>> 1) ^ (register & 1 ? POLYNOMIAL[algorithm] : 0);
    }
  }
  return ((register ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

function records(bytes) {
  const found = [];
  for (let place = 0; place < bytes.length; ) {
    const refused = { outcome: { action: "reject", offset: place, index: found.length } };
    if (bytes.length - place < 5) return refused;
    const length = bytes.readUInt32LE(place + 1);
    if (length > 16 * 1024 * 1024 || length > bytes.length - place - 5) return refused;
    const value = bytes.subarray(place + 5, place + 5 + length);
    found.push({ type: bytes[place], value: value.toString("hex") });
    place += 5 + length;
  }
  return { outcome: { action: "accept" }, records: found };
}

function answer({ id, family, group, bytes }) {
  if (id === "hello") return { name: "node example", families: ["crc", "tlv_decode"] };
  if (family === "crc") return { crc: crc(group.algorithm, Buffer.from(bytes, "hex")) };
  if (group.type !== "TlvDecode") return { skip: `no function reads ${group.type}` };
  return records(Buffer.from(bytes, "hex"));
}

for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  process.stdout.write(JSON.stringify({ id: asked.id, ...answer(asked) }) + "\n");
}
