// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The second line of the TypeScript SDK, in either era: v2.mjs legacy|auto http|sse URL, or
// v2.mjs legacy|auto stdio COMMAND ARG...

import { headers, load, serve } from './lines.mjs';

const { Client, SSEClientTransport, StreamableHTTPClientTransport } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const [mode, kind, to, ...args] = process.argv.slice(2);
const transport = {
  http: () => new StreamableHTTPClientTransport(new URL(to), { requestInit: { headers } }),
  sse: () => new SSEClientTransport(new URL(to), { requestInit: { headers } }),
  stdio: () => new StdioClientTransport({ command: to, args, env: process.env, stderr: 'inherit' }),
}[kind]();
const client = new Client({ name: 'test-v2', version: '1' }, { versionNegotiation: { mode } });
await serve(client, transport, (params, options) => client.callTool(params, options));
