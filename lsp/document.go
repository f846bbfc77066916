// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import "context"

// Document is a file with the text that the server is to take for its own.
type Document struct {
	URI      string
	Language string // by the protocol's name of it
	Version  int    // grows with each change
	Text     string
}

type textDocument struct {
	URI      string  `json:"uri"`
	Language string  `json:"languageId,omitempty"`
	Version  int     `json:"version,omitempty"`
	Text     *string `json:"text,omitempty"`
}

type ofDocument struct {
	Document textDocument `json:"textDocument"`
}

// Open sends the text of a file to the server, which does not read the file itself until Close.
func (c *Client) Open(ctx context.Context, d Document) error {
	return c.notify(ctx, "textDocument/didOpen", ofDocument{textDocument{d.URI, d.Language, d.Version, &d.Text}})
}

// Change sends another text of a file that is open.
func (c *Client) Change(ctx context.Context, d Document) error {
	return c.notify(ctx, "textDocument/didChange", struct {
		ofDocument
		Changes []object `json:"contentChanges"`
	}{ofDocument{textDocument{URI: d.URI, Version: d.Version}}, []object{{"text": d.Text}}})
}

// CloseDocument has the server take what is on the disk for the text of a file again.
func (c *Client) CloseDocument(ctx context.Context, uri string) error {
	return c.notify(ctx, "textDocument/didClose", ofDocument{textDocument{URI: uri}})
}

// Position is a place in a text.
type Position struct {
	Line      uint32 `json:"line"`
	Character uint32 `json:"character"`
}

// Range is what is between two places, the second left out.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a range of a file.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}
