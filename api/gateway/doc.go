// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the coat for the MCP Gateway's SDK, the Python package mcpgateway-sdk: it reaches this server by
// MCPGATEWAY_URL=http://HOST/gateway and MCPGATEWAY_TOKEN=<a token>. It serves what that SDK asks of sandboxes, skills and
// images below [Base]. It decides nothing: each operation is a translation of one of the engine's.
//
// # What the SDK relies on
//
// Ids of sandboxes are UUIDs. They are this server's own ids written otherwise, both ways without a table: see [UUID].
// Sandboxes parse by strict models, so that every field has the type and the bounds of the model or is null. Errors are
// {"error": {code, message, details}} with a status that the SDK has a class for. Fields that are not known are ignored; a
// field that asks for what cannot be had is refused by its name.
//
// What the gateway has beside sandboxes, such as servers of tools, is not here, and 404.
package gateway
