// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// The first line of the TypeScript SDK: v1.mjs http|sse URL, or v1.mjs stdio COMMAND ARG...

import { headers, load, serve } from './lines.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { SSEClientTransport } = load('@modelcontextprotocol/sdk/client/sse.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load('@modelcontextprotocol/sdk/client/streamableHttp.js');

const [kind, to, ...args] = process.argv.slice(2);
const transport = {
  http: () => new StreamableHTTPClientTransport(new URL(to), { requestInit: { headers } }),
  sse: () => new SSEClientTransport(new URL(to), { requestInit: { headers } }),
  stdio: () => new StdioClientTransport({ command: to, args, env: process.env, stderr: 'inherit' }),
}[kind]();
const client = new Client({ name: 'test-v1', version: '1' });
await serve(client, transport, (params, options) => client.callTool(params, undefined, options));
