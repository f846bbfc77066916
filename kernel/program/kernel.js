// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The JavaScript and TypeScript kernel: runs cells in one global scope, as the
// console of a browser does. It runs inside a sandbox, as the sandbox's user, on
// Node 18 and later alone. The package doc of sandpit.dev/kernel is the contract of what it
// reads and writes. The loader gives what stands in the function's parameters; requests
// come on descriptor 3, and 4 and 5 are the outputs for messages. Cells use 0, 1 and
// 2, which are /dev/null and the outputs themselves.
(function kernel(token, language, load, require) {
  'use strict';
  const fs = require('fs');
  const inspector = require('inspector');
  const path = require('path');
  const util = require('util');
  const { Worker } = require('worker_threads');
  const { Writable } = require('stream');
  const { pathToFileURL } = require('url');

  const MARKER = Buffer.from('\x1f' + token + ':', 'latin1');
  const CHUNK = 4096 - MARKER.length - 5; // a write of at most PIPE_BUF is never torn apart
  const MAX_RESULTS = 100;
  const MAX_RESULT_BYTES = 10 << 20; // of all results of a cell
  const MAX_TEXT = 1 << 20; // of one plain text
  const MAX_VALUE = 64 << 10;
  const MAX_TRACEBACK = 256 << 10;
  const IMPORT = '__sandpit_import';

  // What goes out.

  const pause = new Int32Array(new SharedArrayBuffer(4));

  function writeAll(fd, data) {
    for (let at = 0; at < data.length;) {
      try {
        at += fs.writeSync(fd, data, at);
      } catch (e) {
        if (e.code !== 'EAGAIN') throw e;
        Atomics.wait(pause, 0, 0, 1); // some child made the pipe non-blocking
      }
    }
  }

  function send(message, fd = 4) {
    const data = Buffer.from(JSON.stringify(message));
    for (let at = 0; at < data.length; at += CHUNK) {
      const part = data.subarray(at, at + CHUNK);
      const head = (at + CHUNK >= data.length ? '.' : '+') + part.length.toString(16).padStart(4, '0');
      writeAll(fd, Buffer.concat([MARKER, Buffer.from(head), part]));
    }
  }

  // The outputs write at once and leave their pipes blocking, which Node's own do not.
  function output(fd) {
    const stream = new Writable({
      decodeStrings: true, autoDestroy: false, emitClose: false, highWaterMark: 1 << 20,
      write(chunk, _encoding, done) {
        try {
          writeAll(fd, chunk);
          done();
        } catch (e) {
          done(e);
        }
      },
      destroy(_error, done) { done(); },
    });
    stream.fd = fd;
    stream._type = 'pipe';
    stream.end = (chunk, ...rest) => { if (chunk !== undefined && typeof chunk !== 'function') stream.write(chunk, ...rest); return stream; };
    return stream;
  }
  for (const [name, fd] of [['stdout', 1], ['stderr', 2]]) {
    const stream = output(fd);
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
  }

  // Results.

  let cell = null; // the one that runs: {id, bytes, count, dropped, settle}

  function inspect(value) {
    return util.inspect(value, { depth: 6, maxArrayLength: 1000, maxStringLength: MAX_TEXT, breakLength: 100 });
  }

  function bundleOf(value) {
    const own = (typeof value === 'object' && value !== null || typeof value === 'function') && value[Symbol.for('Jupyter.display')];
    if (typeof own === 'function') {
      const bundle = own.call(value);
      return bundle && typeof bundle.then === 'function' ? bundle : Object.assign({}, bundle);
    }
    return { 'text/plain': inspect(value) };
  }

  function sendResult(data, main) {
    if (cell === null) return;
    if (++cell.count > MAX_RESULTS) {
      cell.dropped++;
      return;
    }
    const message = { t: 'result', id: cell.id, data: {} };
    if (main) message.main = true;
    for (let [mime, value] of Object.entries(data)) {
      if (value === undefined || value === null && !mime.endsWith('json')) continue;
      let size;
      try {
        if (ArrayBuffer.isView(value)) value = Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64');
        if (mime === 'text/plain') {
          value = String(value);
          if (value.length > MAX_TEXT) {
            value = value.slice(0, MAX_TEXT);
            message.cut = true;
          }
        } else if (typeof value !== 'string' && !mime.endsWith('json')) {
          value = String(value);
        }
        size = Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value));
      } catch {
        size = Infinity; // it has no JSON
      }
      if (cell.bytes + size > MAX_RESULT_BYTES) {
        (message.omitted ||= []).push(mime);
        continue;
      }
      cell.bytes += size;
      message.data[mime] = value;
    }
    send(message);
  }

  async function display(...values) {
    for (const v of values) sendResult(await bundleOf(v), false);
  }
  display.raw = data => sendResult(data, false);

  // Errors. Lines of a stack from us down are cut off.

  function clean(text) {
    const out = [];
    let ours = false;
    for (const line of text.split('\n')) {
      const frame = /^\s+at /.test(line);
      if (!frame) ours = false;
      if (/\(?(node:inspector|sandpit-kernel\.js)[:)]/.test(line) && frame) ours = true;
      if (!ours) out.push(line);
    }
    return out.join('\n');
  }

  function clip(text, most) {
    return text.length > most ? text.slice(0, most / 2) + '\n…\n' + text.slice(-most / 2) : text;
  }

  function sendError(error, lines) {
    let name, value, trace;
    try {
      if (error instanceof Error || util.types.isNativeError(error)) {
        name = String(error.name);
        value = String(error.message);
        trace = lines ?? clean(util.inspect(error));
      } else {
        name = error === null ? 'null' : typeof error;
        value = inspect(error);
        trace = 'Uncaught ' + value;
      }
    } catch {
      name = 'Error';
      value = trace = '<its text could not be made>';
    }
    send({ t: 'error', id: cell.id, name, value: value.slice(0, MAX_VALUE), traceback: clip(trace, MAX_TRACEBACK).split('\n') });
  }

  class Interrupt extends Error {
    constructor() {
      super('the cell was interrupted');
      this.name = 'Interrupt';
      this.stack = 'Interrupt: the cell was interrupted';
    }
  }

  class Exit extends Error {
    constructor(code) {
      super(String(code ?? 0));
      this.name = 'Exit';
      this.stack = 'Exit: process.exit(' + (code ?? '') + ') ends the cell, not the context';
    }
  }

  const leave = process.exit.bind(process);
  process.exit = code => {
    if (cell === null) leave(code);
    throw new Exit(code);
  };

  function uncaught(error) {
    if (error instanceof Exit && cell !== null) {
      cell.settle(error);
      return;
    }
    let text;
    try { text = clean(util.inspect(error)); } catch { text = 'an error without a text'; }
    process.stderr.write('Uncaught ' + text + '\n');
  }
  process.on('uncaughtException', uncaught);
  process.on('unhandledRejection', uncaught);
  process.on('SIGINT', () => {}); // it is for the children; we hear of an interrupt by a request

  // Modules. A cell is a script, which has no import; what stands for it is the same but for hoisting.

  Object.defineProperty(globalThis, IMPORT, {
    configurable: true,
    value: async (name, options, wanted) => {
      name = String(name);
      if (/^\.{0,2}\//.test(name)) name = pathToFileURL(path.resolve(name)).href;
      const module = await load(name, options);
      for (const w of wanted || []) {
        if (!(w in module)) throw new SyntaxError(`The requested module '${name}' does not provide an export named '${w}'`);
      }
      return module;
    },
  });

  const WORD = /[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*/uy;
  // After these words a slash begins a regular expression.
  const OPERATORS = new Set(['return', 'typeof', 'instanceof', 'in', 'of', 'new', 'delete', 'void', 'throw', 'case', 'do', 'else', 'await', 'yield']);
  const STATIC = /import\s*(?:type\s+(?!from\b|,))?(?:([^'"();]*?)\s*\bfrom\s*)?(['"])([^'"\n]+)\2(?:\s*(?:with|assert)\s*(\{[^}]*\}))?[ \t]*;?/y;

  // rewrite replaces imports and top-level exports of a cell, and keeps its lines. It reads as much of the language
  // as it takes to tell code from strings, comments, templates and regular expressions.
  function rewrite(code) {
    if (!/\b(import|export)\b/.test(code)) return code;
    let out = '';
    let last = ''; // the last token that is not blank
    let begins = true; // a statement may begin here
    const nest = []; // of brackets, and '`' for a template's ${
    let at = 0;
    const take = end => { out += code.slice(at, end); at = end; };
    const template = () => { // from within a template to its end or its next ${
      let i = at;
      for (; i < code.length; i++) {
        if (code[i] === '\\') i++;
        else if (code[i] === '`') { take(i + 1); last = 'x'; return; }
        else if (code[i] === '$' && code[i + 1] === '{') { take(i + 2); nest.push('`'); last = '{'; return; }
      }
      take(i);
    };
    while (at < code.length) {
      const c = code[at];
      if (c === '\n') { take(at + 1); begins = true; continue; }
      if (/\s/.test(c)) { take(at + 1); continue; }
      if (c === '/' && code[at + 1] === '/') { const e = code.indexOf('\n', at); take(e < 0 ? code.length : e); continue; }
      if (c === '/' && code[at + 1] === '*') { const e = code.indexOf('*/', at + 2); take(e < 0 ? code.length : e + 2); continue; }
      const fresh = begins || last === '' || last === ';' || last === '}';
      begins = false;
      if (c === '"' || c === "'") {
        let i = at + 1;
        while (i < code.length && code[i] !== c && code[i] !== '\n') i += code[i] === '\\' ? 2 : 1;
        take(Math.min(i + 1, code.length));
        last = 'x';
        continue;
      }
      if (c === '`') { take(at + 1); template(); continue; }
      if (c === '/' && (last === '' || OPERATORS.has(last) || !/^[\w$)\]}]/u.test(last))) {
        let i = at + 1, set = false;
        while (i < code.length && code[i] !== '\n' && (set || code[i] !== '/')) {
          if (code[i] === '[') set = true;
          if (code[i] === ']') set = false;
          i += code[i] === '\\' ? 2 : 1;
        }
        take(Math.min(i + 1, code.length));
        last = 'x';
        continue;
      }
      WORD.lastIndex = at;
      const word = WORD.exec(code)?.[0];
      if (word) {
        const dot = last === '.' || last === '?.';
        if (word === 'import' && !dot && /^\s*\(/.test(code.slice(at + 6, at + 100))) {
          out += IMPORT;
          at += 6;
        } else if (word === 'import' && fresh && nest.length === 0 && (STATIC.lastIndex = at, STATIC.test(code))) {
          STATIC.lastIndex = at;
          const m = STATIC.exec(code);
          out += importAs(m) + '\n'.repeat(m[0].split('\n').length - 1);
          at += m[0].length;
          last = ';';
          continue;
        } else if (word === 'export' && fresh && nest.length === 0 && /^export\s+(const|let|var|function|class|async)\b/.test(code.slice(at, at + 100))) {
          out += '      ';
          at += 6;
        } else {
          take(at + word.length);
        }
        last = word;
        continue;
      }
      if ('([{'.includes(c)) nest.push(c);
      if (c === '}' && nest.at(-1) === '`') {
        nest.pop();
        take(at + 1);
        template();
        continue;
      }
      if (')]}'.includes(c)) nest.pop();
      take(at + 1);
      last = c;
    }
    return out;
  }

  // importAs is a static import as a statement of a script.
  function importAs([, clause, , name, attributes]) {
    const options = attributes ? `{with: ${attributes}}` : 'undefined';
    const spec = JSON.stringify(name);
    if (clause === undefined || clause.trim() === '') return `await ${IMPORT}(${spec}, ${options});`;
    const parts = [];
    const wanted = [];
    let whole = '';
    const braces = /\{([^}]*)\}/.exec(clause);
    for (const item of clause.replace(/\{[^}]*\}/, '').split(',').map(s => s.trim()).filter(Boolean)) {
      const all = /^\*\s*as\s+(\S+)$/.exec(item);
      if (all) whole = all[1];
      else { parts.push(`default: ${item}`); wanted.push('default'); }
    }
    for (const item of (braces?.[1] ?? '').replace(/\/\*[^]*?\*\/|\/\/.*/g, '').split(',').map(s => s.trim()).filter(Boolean)) {
      if (/^type\s+(?!as\b)/.test(item)) continue;
      const [from, to] = item.split(/\s+as\s+/);
      parts.push(to ? `${from}: ${to}` : from);
      wanted.push(from.replace(/^['"]|['"]$/g, ''));
    }
    const check = language === 'typescript' ? '' : `, ${JSON.stringify(wanted)}`;
    let text = '';
    if (whole) text += `const ${whole} = await ${IMPORT}(${spec}, ${options});`;
    if (parts.length) text += `const {${parts.join(', ')}} = await ${IMPORT}(${spec}, ${options}${check});`;
    return text || `await ${IMPORT}(${spec}, ${options});`;
  }

  // TypeScript: Node's own removal of types, which keeps lines and columns; what
  // has no JavaScript of its own (enum, namespace) is transformed.
  const strip = require('module').stripTypeScriptTypes;

  function javascript(code) {
    if (language !== 'typescript') return code;
    const warn = process.emitWarning;
    process.emitWarning = () => {}; // that it is experimental, for each first use
    try {
      return strip(code, { mode: 'strip' });
    } catch (e) {
      if (e.code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX') throw e;
      return strip(code, { mode: 'transform' });
    } finally {
      process.emitWarning = warn;
    }
  }

  // Evaluation is that of the inspector's console: names declared anew, await at the top, the value of the last statement.

  const session = new inspector.Session();
  session.connect();
  const sink = { value: undefined, put(v) { sink.value = v; } };
  let sinkId;
  globalThis[IMPORT + 'sink'] = sink;
  session.post('Runtime.evaluate', { expression: IMPORT + 'sink' }, (_e, r) => { sinkId = r.result.objectId; });
  delete globalThis[IMPORT + 'sink'];

  // real gives the value that the inspector speaks of.
  function real(remote) {
    if (remote.type === 'undefined') return undefined;
    const argument = remote.objectId ? { objectId: remote.objectId }
      : remote.unserializableValue ? { unserializableValue: remote.unserializableValue } : { value: remote.value };
    session.post('Runtime.callFunctionOn', { objectId: sinkId, functionDeclaration: 'function(v){this.put(v)}', arguments: [argument], silent: true });
    const value = sink.value;
    sink.value = undefined;
    return value;
  }

  // The watcher is a thread that reads the requests, since a cell may compute and
  // never come back to read them. It passes them on, and ends what a cell does at
  // an interrupt that this thread does not get to. What a cell does by itself can be ended; what it does in a callback, after
  // an await, Node may not survive, so that gets a second's time to end of itself.
  //
  // shared[0] is the phase, shared[1] the last cell that is over or has heard of its interrupt.
  const IDLE = 0, RUNS = 1, ENDING = 2;
  const shared = new Int32Array(new SharedArrayBuffer(8));

  function watch() {
    const { parentPort, workerData: shared } = require('worker_threads');
    const inspector = require('inspector');
    const net = require('net');
    let session = null;
    function stop(id) {
      parentPort.postMessage({ op: 'interrupt', id });
      let since = Date.now();
      const look = () => {
        if (Atomics.load(shared, 1) >= id) return;
        if (Atomics.compareExchange(shared, 0, 1, 2) === 1 || Date.now() - since > 1000) {
          since = Date.now();
          if (session === null) {
            session = new inspector.Session();
            session.connectToMainThread();
          }
          session.post('Runtime.terminateExecution', () => {});
        }
        setTimeout(look, 25);
      };
      setTimeout(look, 25);
    }
    let buffer = Buffer.alloc(0);
    const requests = new net.Socket({ fd: 3, readable: true, writable: false });
    requests.on('data', data => {
      buffer = buffer.length ? Buffer.concat([buffer, data]) : data;
      for (;;) {
        const line = buffer.indexOf(10);
        if (line < 0) return;
        const size = Number(buffer.toString('latin1', 0, line));
        if (buffer.length < line + 1 + size) return;
        const request = JSON.parse(buffer.toString('utf8', line + 1, line + 1 + size));
        buffer = buffer.subarray(line + 1 + size);
        if (request.op === 'interrupt') stop(request.id);
        else parentPort.postMessage(request);
      }
    });
    requests.on('end', () => parentPort.postMessage({ op: 'leave', code: 0 }));
    requests.on('error', () => parentPort.postMessage({ op: 'leave', code: 1 }));
  }

  function cellName(count) {
    return 'cell-' + count + (language === 'typescript' ? '.ts' : '.js');
  }

  function evaluate(code, count) {
    return new Promise((resolve, reject) => {
      let ended = false;
      cell.settle = reject;
      const name = cellName(count);
      let expression;
      const answered = (error, answer) => {
        if (error) { // nothing else than its termination makes it fail
          ended = true;
          reject(new Interrupt());
        } else if (answer.exceptionDetails) {
          const d = answer.exceptionDetails;
          const thrown = real(d.exception ?? { type: 'undefined' });
          reject(d.stackTrace === undefined && thrown instanceof SyntaxError ? placed(thrown, d, expression, name) : thrown);
        } else {
          resolve(real(answer.result));
        }
      };
      send({ t: 'start', id: cell.id, count });
      try {
        expression = rewrite(javascript(code));
      } catch (e) {
        reject(e);
        return;
      }
      Atomics.store(shared, 0, RUNS);
      session.post('Runtime.evaluate', {
        expression: expression + '\n//# sourceURL=' + name, replMode: true, awaitPromise: true, silent: true, objectGroup: 'cell',
      }, answered);
      if (Atomics.compareExchange(shared, 0, RUNS, IDLE) === ENDING) {
        // The end that the watcher has sent must not meet anything else.
        if (!ended) session.post('Runtime.evaluate', { expression: 'for (;;);', silent: true }, () => {});
        reject(new Interrupt());
        Atomics.store(shared, 0, IDLE);
      }
    });
  }

  // placed makes a syntax error say where it is.
  function placed(error, details, code, name) {
    const line = code.split('\n')[details.lineNumber];
    if (line !== undefined && line.length < 1000) {
      error.stack = `${name}:${details.lineNumber + 1}\n${line}\n${' '.repeat(Math.max(0, details.columnNumber))}^\n${error.name}: ${error.message}`;
    }
    return error;
  }

  async function run(request, count) {
    cell = { id: request.id, bytes: 0, count: 0, dropped: 0, settle() {} };
    const before = {};
    for (const [name, value] of Object.entries(request.env ?? {})) {
      before[name] = process.env[name];
      process.env[name] = value;
    }
    const argv = process.argv;
    if (request.argv) process.argv = [argv[0], cellName(count), ...request.argv];
    const end = { t: 'end', id: cell.id, status: 'ok' };
    try {
      const value = await evaluate(request.code, count);
      if (value !== undefined) sendResult(await bundleOf(value), true);
    } catch (e) {
      end.status = e instanceof Interrupt ? 'interrupted' : 'error';
      sendError(e, e instanceof Interrupt || e instanceof Exit ? e.stack : e instanceof SyntaxError ? clean(String(e.stack)) : undefined);
    }
    session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
    if (request.argv) process.argv = argv;
    if (cell.dropped) end.dropped = cell.dropped;
    const id = cell.id;
    cell = null;
    Atomics.store(shared, 1, id);
    send({ t: 'sync', id }, 5);
    send(end);
  }

  // Requests.

  if (language === 'typescript' && typeof strip !== 'function') {
    send({ t: 'refuse', reason: 'typescript', version: process.versions.node });
    leave(3);
  }
  Object.defineProperty(globalThis, 'display', { value: display, configurable: true, writable: true });
  globalThis.require = require;

  let count = 0;
  const watcher = new Worker(`(${watch})()`, { eval: true, workerData: shared, execArgv: [] });
  watcher.on('message', request => {
    switch (request.op) {
      case 'run':
        run(request, ++count);
        break;
      case 'ping':
        send({ t: 'pong', id: request.id });
        break;
      case 'interrupt':
        Atomics.store(shared, 1, Math.max(Atomics.load(shared, 1), request.id));
        if (cell !== null && cell.id === request.id) cell.settle(new Interrupt());
        break;
      case 'leave':
        leave(request.code);
    }
  });
  watcher.on('error', () => leave(1));
  send({ t: 'sync', id: 0 }, 5);
  send({ t: 'ready', version: process.versions.node });
})
