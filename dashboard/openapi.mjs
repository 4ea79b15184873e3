// SPDX-License-Identifier: Apache-2.0
// Prints the OpenAPI 3.1 document of the tracker's API, made of docs/API.md (addresses, roles, parameters, what fields
// are) and src/api_types.ts (their types), so that nothing is written down twice. `npm run build` writes it into dist/,
// from where the tracker serves it; tests compare it with the tracker's answers.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const ts = createRequire(`${here}package.json`)('typescript');

/** The operations of docs/API.md: { method, path, text, parameters, body, fields }, the last three of [name, meaning]. */
export function readApiPage() {
  const operations = [];
  const tables = { Field: 'fields', Body: 'body', Parameter: 'parameters' };
  let operation = null;
  let rows = null;
  for (const line of fs.readFileSync(`${here}../docs/API.md`, 'utf8').split('\n')) {
    const heading = /^## `([A-Z]+) ([^`]+)`/.exec(line);
    const table = /^\| (Field|Body|Parameter) \|/.exec(line);
    const row = /^\| `([^`]+)` \| (.*) \|$/.exec(line);
    if (heading) {
      operation = { method: heading[1], path: heading[2], text: [], parameters: [], body: [], fields: [] };
      operations.push(operation);
      rows = null;
    } else if (line.startsWith('## ')) operation = null;
    else if (operation === null) continue;
    else if (table) rows = operation[tables[table[1]]];
    else if (row) rows.push([row[1], row[2]]);
    else if (!line.startsWith('|') && !line.startsWith('    ')) operation.text.push(line);
  }
  return operations.map((one) => ({
    ...one,
    text: one.text
      .join('\n')
      .trim()
      .replace(/\n{3,}/g, '\n\n'),
  }));
}

/** By "GET /api/v1/jobs" and "Body of POST /api/v1/jobs": the interface in api_types.ts. A '*' stands for any segment. */
export function readApiTypes() {
  const file = `${here}src/api_types.ts`;
  const program = ts.createProgram([file], { strict: true, noLib: false, lib: ['lib.es2022.d.ts'], types: [] });
  const checker = program.getTypeChecker();
  const types = new Map();
  for (const node of program.getSourceFile(file).statements) {
    const comment = String(ts.getJSDocCommentsAndTags(node)[0]?.comment ?? '');
    // A name in braces is what the page has as '*', which a comment may not have before a '/'.
    const found = /^((?:Body of )?[A-Z]+ [^\s:]+)/.exec(comment);
    if (found && /\/(api\/v1\/|healthz)/.test(found[1])) types.set(found[1].replace(/\{[^}]*\}/g, '*'), node);
  }
  return { checker, types };
}

const segments = {
  jobs: 'job',
  workloads: 'digest',
  candidates: 'row',
  agents: 'agent',
  files: 'digest',
  watches: 'watch',
  chunks: 'index',
};
const wholeNumbers = ['limit', 'after_row', 'before_row', 'confirmed', 'index', 'row'];

/** Whether a line of the interface's comment says that values may have other fields, and lack those of the interface. */
const isOpen = (type) =>
  (type.symbol?.declarations ?? []).some((node) => ts.getJSDocTags(node).some((tag) => tag.tagName.text === 'open'));

class Schemas {
  components = {};
  open = false; // within a type that is open

  constructor(checker) {
    this.checker = checker;
  }

  /** `meanings`: by field, as in "jobs[].model"; `name`: that of this value. */
  of(type, meanings, name = '') {
    const schema = this.bare(type, meanings, name);
    const meaning = meanings.get(name);
    return meaning && !schema.description ? { ...schema, description: meaning } : schema;
  }

  bare(type, meanings, name) {
    const { TypeFlags } = ts;
    if (type.isUnion() && !(type.flags & TypeFlags.Boolean)) return this.union(type.types, meanings, name);
    if (type.flags & TypeFlags.BooleanLike) return { type: 'boolean' };
    if (type.isStringLiteral()) return { type: 'string', enum: [type.value] };
    if (type.flags & TypeFlags.StringLike) return { type: 'string' };
    if (type.flags & TypeFlags.NumberLike) return { type: 'number' };
    if (this.checker.isArrayType(type)) {
      return { type: 'array', items: this.of(this.checker.getTypeArguments(type)[0], meanings, `${name}[]`) };
    }
    const values = this.checker.getIndexTypeOfType(type, ts.IndexKind.String);
    if (values) return { type: 'object', additionalProperties: this.of(values, meanings, name ? `${name}.*` : '*') };
    const symbol = type.aliasSymbol ?? type.symbol;
    const isNamed = symbol && symbol.name !== '__type' && name !== '';
    if (!isNamed) return this.object(type, meanings, name);
    if (!this.components[symbol.name]) {
      this.components[symbol.name] = {}; // it may contain itself
      this.components[symbol.name] = this.object(type, meanings, name);
    }
    return { $ref: `#/components/schemas/${symbol.name}` };
  }

  union(types, meanings, name) {
    const present = types.filter((one) => !(one.flags & (ts.TypeFlags.Null | ts.TypeFlags.Undefined)));
    const isNullable = types.some((one) => one.flags & ts.TypeFlags.Null);
    const isEnum = present.every((one) => one.isStringLiteral());
    const isBoolean = present.every((one) => one.flags & ts.TypeFlags.BooleanLike);
    const schema = isEnum
      ? { type: 'string', enum: present.map((one) => one.value) }
      : isBoolean
        ? { type: 'boolean' }
        : this.bare(present[0], meanings, name);
    if (!isNullable) return schema;
    return schema.$ref || schema.enum
      ? { anyOf: [schema, { type: 'null' }] }
      : { ...schema, type: [schema.type, 'null'] };
  }

  object(type, meanings, name) {
    const outside = this.open;
    this.open ||= isOpen(type);
    const schema = this.closedObject(type, meanings, name);
    if (this.open) {
      delete schema.required;
      schema.additionalProperties = true;
    }
    this.open = outside;
    return schema;
  }

  closedObject(type, meanings, name) {
    const properties = {};
    const required = [];
    for (const property of this.checker.getPropertiesOfType(type)) {
      const field = name ? `${name}.${property.name}` : property.name;
      properties[property.name] = this.of(this.checker.getTypeOfSymbol(property), meanings, field);
      if (!(property.flags & ts.SymbolFlags.Optional)) required.push(property.name);
    }
    return { type: 'object', properties, ...(required.length > 0 ? { required } : {}) };
  }
}

function pathOf(path) {
  const names = [];
  const parts = path.split('/');
  const named = parts.map((part, i) => {
    if (part !== '*') return part;
    names.push(segments[parts[i - 1]]);
    return `{${segments[parts[i - 1]]}}`;
  });
  return { address: named.join('/'), names };
}

const parameter = (name, place, description) => ({
  name,
  in: place,
  ...(place === 'path' ? { required: true } : {}),
  ...(description ? { description } : {}),
  schema: { type: wholeNumbers.includes(name) ? 'integer' : 'string' },
});

function operationOf(one, all, types, schemas) {
  const typed = (key, rows) => {
    const node = types.get(key);
    if (!node) throw new Error(`no type in api_types.ts is that of ${key}`);
    return schemas.of(schemas.checker.getTypeAtLocation(node), new Map(rows));
  };
  const [, mime] = /The answer is\s+`([a-z]+\/[a-z.+-]+)`/.exec(one.text) ?? [];
  const [, other] = /The answer is that of\s+`([^`]+)`/.exec(one.text) ?? [];
  const same = all.find((known) => `${known.method} ${known.path}` === other);
  const answer = mime
    ? { [mime]: {} }
    : { 'application/json': { schema: typed(other ?? `${one.method} ${one.path}`, (same ?? one).fields) } };
  const [, bytes] = /The body is\s+`([a-z]+\/[a-z.+-]+)`/.exec(one.text) ?? [];
  const body = bytes
    ? { [bytes]: {} }
    : one.body.length > 0
      ? { 'application/json': { schema: typed(`Body of ${one.method} ${one.path}`, one.body) } }
      : null;
  const [, role] = /Role: ([a-z]+)/.exec(one.text) ?? [];
  const { names } = pathOf(one.path);
  const parameters = [
    ...names.map((name) => parameter(name, 'path')),
    ...one.parameters.map(([name, meaning]) => parameter(name, 'query', meaning)),
  ];
  return {
    summary: /^[^.]*(?:\.(?!\s)[^.]*)*\./.exec(one.text)?.[0].replaceAll('\n', ' ') ?? '',
    description: one.text,
    'x-role': role ?? null,
    ...(role ? {} : { security: [] }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: { content: body } } : {}),
    responses: {
      200: { description: 'The answer.', content: answer },
      default: {
        description: 'A refusal.',
        content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
      },
    },
  };
}

function document() {
  const operations = readApiPage();
  const { checker, types } = readApiTypes();
  const schemas = new Schemas(checker);
  schemas.components.Error = {
    type: 'object',
    properties: {
      error: {
        type: 'object',
        properties: { code: { type: 'string' }, message: { type: 'string' } },
        required: ['code', 'message'],
      },
    },
    required: ['error'],
  };
  const paths = {};
  for (const one of operations) {
    const { address } = pathOf(one.path);
    paths[address] ??= {};
    paths[address][one.method.toLowerCase()] = operationOf(one, operations, types, schemas);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tracker of a Hone farm',
      version: '1',
      description: 'Jobs, devices, records and files of a farm. docs/API.md of Hone is the same page for people.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ certificate: [] }, { session: [] }, { key: [] }],
    paths,
    components: {
      schemas: schemas.components,
      securitySchemes: {
        certificate: { type: 'mutualTLS', description: 'A certificate of the farm.' },
        session: { type: 'apiKey', in: 'cookie', name: '__Host-hone', description: 'Of POST /api/v1/session.' },
        key: { type: 'http', scheme: 'bearer', description: 'On loopback, where the farm is of one user.' },
      },
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(document(), null, 1));
