// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// The protocol's first version without sessions, and where it is named.
const (
	firstModern     = "2026-07-28"
	versionHeader   = "Mcp-Protocol-Version"
	sessionHeader   = "Mcp-Session-Id"
	versionMeta     = "io.modelcontextprotocol/protocolVersion"
	methodDiscovery = "server/discover"
)

// isModern tells the era of a request. Whoever names a session is of the old
// one. Else the version decides, by header or in the message; and asking what
// there is, is only done in the new one. The body is read and put back; the
// error is that it has more than most bytes.
func isModern(w http.ResponseWriter, r *http.Request, most int64) (bool, error) {
	if r.Method != http.MethodPost || r.Header.Get(sessionHeader) != "" {
		return false, nil
	}
	// Versions are dates, and sort as text.
	if r.Header.Get(versionHeader) >= firstModern {
		return true, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if tooBig, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return false, fmt.Errorf("the message has more than %d bytes; send large files by REST: PUT /v1/sandboxes/{id}/files/{path}", tooBig.Limit)
	}
	// What was read is passed on: whoever reads a body that broke off sees that.
	rest := io.Reader(bytes.NewReader(body))
	if err != nil {
		rest = io.MultiReader(rest, failed{err})
	}
	r.Body = io.NopCloser(rest)
	var m struct {
		Method string `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil {
		return false, nil // a batch, or no message at all: the old era's to judge
	}
	_, named := m.Params.Meta[versionMeta]
	return named || m.Method == methodDiscovery, nil
}

type failed struct{ err error }

func (f failed) Read([]byte) (int, error) { return 0, f.err }
