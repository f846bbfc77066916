// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

// Package lsp speaks to a language server by the base protocol and the few methods that its callers need: files are opened,
// changed and closed, and the server is asked for symbols and completions. It takes a stream, and does not know what
// is at its other end: everything that comes from there is checked like the input of a stranger. A server that breaks
// the protocol or a bound is given up, and one that does not answer costs a caller no more than its context says.
//
// Files are named by URIs, see [FileURI], and lines and characters count from 0, characters in units of UTF-16.
package lsp
