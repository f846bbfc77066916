// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
)

// MaxCompletions bounds the completions of an answer; of more the first are told, as a list that is not complete.
const MaxCompletions = 5_000

// Completion is what may be written at a place.
type Completion struct {
	Label         string        `json:"label"`
	Kind          int           `json:"kind"` // by the protocol's numbers; 0: not said
	Detail        string        `json:"detail"`
	Documentation Documentation `json:"documentation"`
	SortText      string        `json:"sortText"`
	FilterText    string        `json:"filterText"`
	InsertText    string        `json:"insertText"`
}

// Documentation is a text for people. The zero value is none.
type Documentation struct {
	Kind  string `json:"kind"` // "plaintext" or "markdown"
	Value string `json:"value"`
}

// UnmarshalJSON reads both forms of it: the text alone, and with its kind.
func (d *Documentation) UnmarshalJSON(b []byte) error {
	if bytes.HasPrefix(b, []byte{'"'}) {
		d.Kind = "plaintext"
		return json.Unmarshal(b, &d.Value)
	}
	type plain Documentation
	return json.Unmarshal(b, (*plain)(d))
}

// CompletionList is what a server proposes.
type CompletionList struct {
	Incomplete bool // there may be more
	Items      []Completion
}

// Complete returns what may be written at a place of a file that is open.
func (c *Client) Complete(ctx context.Context, uri string, at Position) (CompletionList, error) {
	const method = "textDocument/completion"
	b, err := c.call(ctx, method, struct {
		ofDocument
		Position Position `json:"position"`
	}{ofDocument{textDocument{URI: uri}}, at})
	if err != nil {
		return CompletionList{}, err
	}
	out, err := completions(b)
	if err != nil {
		return CompletionList{}, unread(method, err)
	}
	return out, nil
}

// completions reads a list of completions in both of its forms.
func completions(b json.RawMessage) (CompletionList, error) {
	var out CompletionList
	items := b
	if bytes.HasPrefix(b, []byte{'{'}) {
		var list struct {
			Incomplete bool            `json:"isIncomplete"`
			Items      json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(b, &list); err != nil {
			return out, err
		}
		out.Incomplete, items = list.Incomplete, list.Items
	}
	err := each(items, func(d *json.Decoder) error {
		if len(out.Items) == MaxCompletions {
			return errTooMany
		}
		var one Completion
		if err := d.Decode(&one); err != nil {
			return err
		}
		out.Items = append(out.Items, one)
		return nil
	})
	if errors.Is(err, errTooMany) {
		out.Incomplete, err = true, nil
	}
	return out, err
}
