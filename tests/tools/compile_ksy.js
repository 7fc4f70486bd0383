// node compile_ksy.js OUT FILE.ksy...: compile Kaitai specifications to Python modules in OUT.
// What a specification imports stands in its own folder.
const fs = require("fs");
const path = require("path");
const yaml = require("js-yaml");
const compiler = require("kaitai-struct-compiler");

function load(file) {
  return yaml.load(fs.readFileSync(file, "utf8"));
}

async function compile(out, file) {
  const importer = {
    importYaml: async (name) => load(path.join(path.dirname(file), name + ".ksy")),
  };
  const modules = await compiler.compile("python", load(file), importer, false);
  for (const [name, text] of Object.entries(modules)) {
    fs.writeFileSync(path.join(out, name), text);
  }
}

async function main([out, ...files]) {
  for (const file of files) {
    await compile(out, file);
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(String(error));
  process.exit(1);
});
