// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package daytona is the coat for Daytona's clients: their SDKs, CLI and MCP server reach this server by
// DAYTONA_API_URL=http://HOST/daytona and DAYTONA_API_KEY=<a token>. It serves what they call the API, below [Base], and
// mounts the toolbox, what they call inside a sandbox, below it. It makes no decisions: each operation translates
// one of the engine's.
//
// # What clients rely on
//
// An answer has the final state: of a create, a start, a stop, so that no client polls. A create whose image has to be built or
// pulled first answers before, and events tell how it goes on. Statuses are
// exactly those of the clients' published description, since Python's returns nothing on any other. Every object has all of its
// fields, and every body is JSON with its content type. Fields and parameters that are not known are ignored. Nothing is redirected.
//
// A sandbox is named by its id or its name, which is its key here. What this server does not have, such as a GPU, is refused
// with the field and the reason before anything is made; nothing is ignored that asks for safety.
//
// "Daytona" is the name of what these clients are compatible with, and nothing here is of its makers.
package daytona
