// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package mcpbridge lets an MCP client that speaks stdio use a server that
// speaks Streamable HTTP. Messages pass as they are; the bridge reads of them
// only what the transports need. It speaks whichever era of the protocol the
// client does: it keeps the session of the old one, and sets the headers of the
// new one.
//
// What it adds is endurance. A server that was restarted knows no old session:
// the bridge opens a new one with what the client said at first, and repeats
// what the server had not taken. A call that the server may have begun when the
// connection broke is not repeated, since it may do its work twice; the client
// gets an error that says so.
//
// It knows neither tools nor sandboxes.
package mcpbridge
