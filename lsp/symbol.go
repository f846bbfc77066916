// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sandpit.dev/fault"
)

// MaxSymbols bounds the symbols of an answer.
const MaxSymbols = 10_000

// Symbol is a name that a text gives to something.
type Symbol struct {
	Name     string
	Kind     int // by the protocol's numbers
	Location Location
}

// anySymbol is a symbol in each of the forms in which servers tell of them.
type anySymbol struct {
	Name     string          `json:"name"`
	Kind     int             `json:"kind"`
	Location *Location       `json:"location"` // without a range, too
	Range    *Range          `json:"range"`    // of one that has children
	Children json.RawMessage `json:"children"`
}

// DocumentSymbols returns the symbols of a file that is open, each behind the one that it is within. More than MaxSymbols are
// fault.TooLarge.
func (c *Client) DocumentSymbols(ctx context.Context, uri string) ([]Symbol, error) {
	const method = "textDocument/documentSymbol"
	b, err := c.call(ctx, method, ofDocument{textDocument{URI: uri}})
	if err != nil {
		return nil, err
	}
	out, err := appendSymbols(nil, b, uri)
	switch {
	case errors.Is(err, errTooMany):
		return nil, fault.New(fault.TooLarge, "the language server answers %s with more than %d symbols", method, MaxSymbols).WithRemedy("ask for the project's symbols by a query")
	case err != nil:
		return nil, unread(method, err)
	}
	return out, nil
}

// Symbols returns the symbols of the project that a query finds, in the order and by the rules of the server: the first
// MaxSymbols of them.
func (c *Client) Symbols(ctx context.Context, query string) ([]Symbol, error) {
	const method = "workspace/symbol"
	b, err := c.call(ctx, method, object{"query": query})
	if err != nil {
		return nil, err
	}
	out, err := appendSymbols(nil, b, "")
	if err != nil && !errors.Is(err, errTooMany) {
		return nil, unread(method, err)
	}
	return out, nil
}

// appendSymbols appends the symbols of a list; errTooMany: those that are beyond the bound are left out.
func appendSymbols(out []Symbol, b json.RawMessage, uri string) ([]Symbol, error) {
	err := each(b, func(d *json.Decoder) error {
		var s anySymbol
		if err := d.Decode(&s); err != nil {
			return err
		}
		if len(out) == MaxSymbols {
			return errTooMany
		}
		one := Symbol{Name: s.Name, Kind: s.Kind}
		switch {
		case s.Location != nil:
			one.Location = *s.Location
		case s.Range != nil && uri != "":
			one.Location = Location{uri, *s.Range}
		default:
			return fmt.Errorf("the symbol %q is nowhere", clip(s.Name, 80))
		}
		out = append(out, one)
		var err error
		out, err = appendSymbols(out, s.Children, uri)
		return err
	})
	return out, err
}

var errTooMany = errors.New("there are too many")

// each has one called for each element of a list, whose decoder stands before it. null, and nothing, is an empty list.
func each(b json.RawMessage, one func(*json.Decoder) error) error {
	if len(b) == 0 || string(b) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(errors.New("it is no list"), err)
	}
	for d.More() {
		if err := one(d); err != nil {
			return err
		}
	}
	return nil
}
