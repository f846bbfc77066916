// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcpsetup knows what programs that speak MCP read to find a server: where their
// files are, what stands in them, and the links that install a server. It prints that
// for one server, and merges it into a file that is there. It touches no file itself.
//
// Where the program can name a variable of its environment, or ask its user, the token is
// not in the file; see [Client.Refers].
package mcpsetup
