// SPDX-License-Identifier: Apache-2.0
// Compares the interfaces of dashboard/src/api_types.ts with the tables of docs/API.md, field by field. An interface
// says in its comment which address answers it, or takes it as its body.
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { readApiPage, readApiTypes } from '../../dashboard/openapi.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const ts = createRequire(`${root}/dashboard/package.json`)('typescript');
const { checker, types } = readApiTypes();

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

const documented = new Map();
for (const { method, path, fields, body } of readApiPage()) {
  if (fields.length > 0) documented.set(`${method} ${path}`, fields);
  if (body.length > 0) documented.set(`Body of ${method} ${path}`, body);
}
for (const [address, node] of types) {
  const found = leaves(checker.getTypeAtLocation(node), '', new Set());
  const fields = (documented.get(address) ?? []).map(([name]) => name);
  for (const leaf of found) {
    if (!fields.some((field) => covers(field, leaf)))
      say(`${node.name.text} has ${leaf}, which docs/API.md does not have for: ${address}`);
  }
  for (const field of fields) {
    // An object that may be null is a line of its own.
    if (![...found].some((leaf) => covers(field, leaf) || leaf.startsWith(`${field}.`)))
      say(`docs/API.md has ${field} for: ${address}; ${node.name.text} has not`);
  }
}
for (const address of documented.keys()) {
  if (!types.has(address)) say(`no type is that of: ${address}`);
}
console.log(`${types.size} addresses, ${wrong} differences`);
process.exit(wrong === 0 && types.size > 0 ? 0 : 1);
