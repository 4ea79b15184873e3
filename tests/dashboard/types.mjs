// SPDX-License-Identifier: Apache-2.0
// Holds the interfaces of dashboard/src/api_types.ts against the tables of docs/API.md, field by field. An interface
// says in its comment which address answers it.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ts = createRequire(`${root}/dashboard/package.json`)('typescript');

function documented() {
  const fields = new Map();
  let address = '';
  for (const line of fs.readFileSync(`${root}/docs/API.md`, 'utf8').split('\n')) {
    const heading = /^## `GET ([^`]+)`/.exec(line);
    if (heading) address = heading[1];
    const row = /^\| `([^`]+)` \|/.exec(line);
    if (row) fields.set(address, [...(fields.get(address) ?? []), row[1]]);
  }
  return fields;
}

const file = `${root}/dashboard/src/api_types.ts`;
const program = ts.createProgram([file], { strict: true, noLib: false, lib: ['lib.es2022.d.ts'], types: [] });
const checker = program.getTypeChecker();

// "jobs[].failed.*" for every value in a type.
function leaves(type, name, found) {
  const parts = type.isUnion()
    ? type.types.filter((part) => !(part.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)))
    : [type];
  for (const part of parts) {
    const values = checker.getIndexTypeOfType(part, ts.IndexKind.String);
    if (checker.isArrayType(part)) leaves(checker.getTypeArguments(part)[0], `${name}[]`, found);
    else if (values) leaves(values, `${name}.*`, found);
    else if (part.flags & ts.TypeFlags.Object) {
      for (const property of part.getProperties()) {
        leaves(checker.getTypeOfSymbol(property), name ? `${name}.${property.name}` : property.name, found);
      }
    } else found.add(name);
  }
  return found;
}

const covers = (field, leaf) => field === leaf || (field.endsWith('*') && leaf.startsWith(field.slice(0, -1)));
let wrong = 0;
const say = (text) => {
  ++wrong;
  console.log(text);
};

const pages = documented();
const typed = new Set();
for (const node of program.getSourceFile(file).statements) {
  const comment = ts.getJSDocCommentsAndTags(node)[0]?.comment ?? '';
  // A name in braces is what the page has as '*', which a comment may not have before a '/'.
  const address = /^GET (\S+)/.exec(String(comment))?.[1].replace(/\{[^}]*\}/g, '*');
  if (!address) continue;
  typed.add(address);
  const found = leaves(checker.getTypeAtLocation(node), '', new Set());
  const fields = pages.get(address) ?? [];
  for (const leaf of found) {
    if (!fields.some((field) => covers(field, leaf)))
      say(`${node.name.text} has ${leaf}, which ${address} does not answer`);
  }
  for (const field of fields) {
    if (![...found].some((leaf) => covers(field, leaf)))
      say(`${address} answers ${field}, which ${node.name.text} has not`);
  }
}
for (const address of pages.keys()) {
  if (!typed.has(address)) say(`no type is that of ${address}`);
}
console.log(`${typed.size} addresses, ${wrong} differences`);
process.exit(wrong === 0 && typed.size > 0 ? 0 : 1);
