// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
)

// JSON-RPC's codes, and one of the range that servers define for themselves.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeLost    = -32000 // the server cannot be reached, refused, or was lost
)

// What the transports need to know of the protocol.
const (
	methodInitialize = "initialize"
	methodReady      = "notifications/initialized"
	methodCancelled  = "notifications/cancelled"
	methodListen     = "subscriptions/listen"
	methodCallTool   = "tools/call"

	metaVersion = "io.modelcontextprotocol/protocolVersion"
)

// message is what is read of a message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	Params struct {
		Meta      map[string]json.RawMessage `json:"_meta"`
		Name      string                     `json:"name"`
		URI       string                     `json:"uri"`
		RequestID json.RawMessage            `json:"requestId"`
	} `json:"params"`
}

func parse(data []byte) (*message, error) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		// Parameters of a type that is not known here are the server's to judge.
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); !ok || !json.Valid(data) || data[0] != '{' {
			return nil, err
		}
	}
	return &m, nil
}

func (m *message) isCall() bool { return m.Method != "" && m.hasID() }

func (m *message) isReply() bool { return m.Method == "" && m.hasID() }

func (m *message) hasID() bool { return len(m.ID) > 0 && string(m.ID) != "null" }

// version is what a message of the stateless era names, "" in the other.
func (m *message) version() string {
	var v string
	if json.Unmarshal(m.Params.Meta[metaVersion], &v) != nil {
		return ""
	}
	return v
}

// repeatable reports whether the message may be sent again although it may have
// been received: all that only ask may.
func (m *message) repeatable() bool { return m.Method != methodCallTool && m.Method != methodListen }

// key is an id in one spelling.
func key(id json.RawMessage) string {
	var b bytes.Buffer
	if compact(&b, id) != nil {
		return string(id)
	}
	return b.String()
}

func compact(b *bytes.Buffer, data []byte) error { return json.Compact(b, data) }

// errorReply returns an error that answers the call id; nil if the id is unknown.
func errorReply(id json.RawMessage, code int, text string) []byte {
	type rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	data, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}{"2.0", id, rpcError{code, text}})
	if err != nil {
		return nil // cannot be: the id was parsed
	}
	return data
}
