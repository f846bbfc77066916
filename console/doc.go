// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package console serves the pages by which people use the server with a browser.
//
// It is a coat that has nothing of its own: its pages call the same REST as every client, with the cookie of a session (see
// package access/session). What is served here are files, the same for everyone, which are built of console/ui by
// `make console` and kept in dist, so that a build of the server needs neither Node nor a network.
//
// Names of files change with what is in them, so that browsers keep them for ever; the page that names them is kept by
// nobody. Its policy lets it load what is the server's alone, run no other script, and be shown in no frame.
package console
