// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Makes a client of the SDK's do what lines of JSON on standard input ask, and answers
// each with a line: {id, list} or {id, tool, args} is a call, {cancel} ends one.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

// load gives a package of those that the tests have installed.
export const load = createRequire(process.env.PACKAGES + '/');

// headers are what every request carries over HTTP.
export const headers = { Authorization: 'Bearer ' + process.env.TOKEN };

const say = (o) => process.stdout.write(JSON.stringify(o) + '\n');

// serve runs until standard input ends. list and call take a signal that aborts them.
export async function serve(client, transport, call) {
  await client.connect(transport);
  say({ id: 0, text: client.getServerVersion().name });
  const running = new Map();
  for await (const line of createInterface({ input: process.stdin })) {
    const ask = JSON.parse(line);
    if (ask.cancel) {
      running.get(ask.cancel)?.abort('the test changed its mind');
      continue;
    }
    const abort = new AbortController();
    running.set(ask.id, abort);
    const options = { signal: abort.signal, timeout: 90_000 };
    const done = ask.list
      ? client.listTools(undefined, options).then((r) => ({ names: r.tools.map((t) => t.name) }))
      : call({ name: ask.tool, arguments: ask.args }, options).then((r) => ({
          text: r.content.map((c) => c.text ?? '').join('\n'), isError: Boolean(r.isError),
        }));
    done.catch((e) => ({ error: String(e) })).then((answer) => {
      running.delete(ask.id);
      say({ id: ask.id, ...answer });
    });
  }
  await client.close();
}
