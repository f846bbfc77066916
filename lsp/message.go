// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sandpit.dev/fault"
)

// message is one of the protocol's, as it comes: a request has a method and an id, a notification a method alone, and a
// response an id alone.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *refusal        `json:"error"`
}

// refusal is how a request is refused, in both directions.
type refusal struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
}

// A ResponseError is the cause of an error: the server refused a request, in its own words.
type ResponseError struct {
	Method  string
	Code    int64
	Message string
}

func (e *ResponseError) Error() string {
	return fmt.Sprintf("it refuses %s: %s (%d)", e.Method, e.Message, e.Code)
}

// request is a request as it is sent, or without an id a notification.
type request struct {
	Version string `json:"jsonrpc"`
	ID      int64  `json:"id,omitempty"`
	Method  string `json:"method"`
	Params  any    `json:"params,omitempty"`
}

// answer is the response to a request of the server's.
type answer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

// denial is the response to one that is refused.
type denial struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   refusal         `json:"error"`
}

const version = "2.0"

// maxID bounds the id of a request of the server's, in bytes, since it is sent back.
const maxID = 256

// noMethod is the code of a method that is not known.
const noMethod = -32601

// receive does what a message asks for. The error is that it is none.
func (c *Client) receive(b []byte) error {
	var m message
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("a message cannot be read: %w", err)
	}
	null := len(m.ID) == 0 || string(m.ID) == "null"
	switch {
	case m.Method != nil && null:
		return nil // of notifications none is needed
	case m.Method != nil:
		return c.serve(*m.Method, m.ID, m.Params)
	case null && m.Error != nil:
		return fmt.Errorf("it could not read a message: %s (%d)", clip(m.Error.Message, maxSaid), m.Error.Code)
	case null:
		return errors.New("a message is neither a request nor a response")
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || id <= 0 || id > c.last {
		return fmt.Errorf("it answers the request %s, which was not sent", clip(string(m.ID), 80))
	}
	if waits := c.waiting[id]; waits != nil { // else its caller gave up, or it is answered twice
		delete(c.waiting, id)
		waits <- m // has room for one
	}
	return nil
}

// serve answers a request of the server's: with nothing but that it was heard, where it may take that for an answer.
func (c *Client) serve(method string, id, params json.RawMessage) error {
	if len(id) > maxID || id[0] != '"' && (id[0] < '0' || id[0] > '9') && id[0] != '-' {
		return fmt.Errorf("the id of a request, %s, is neither a number nor a text of at most %d bytes", clip(string(id), 80), maxID)
	}
	var result any
	switch method {
	case "workspace/configuration":
		var asked struct {
			Items []struct{} `json:"items"`
		}
		if err := json.Unmarshal(params, &asked); err != nil {
			return fmt.Errorf("a request for the configuration cannot be read: %w", err)
		}
		result = make([]any, min(len(asked.Items), maxConfigured)) // nothing is set
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create", "window/showMessageRequest":
	case "workspace/workspaceFolders":
		result = c.folders()
	default:
		return c.reply(denial{version, id, refusal{noMethod, "the method is not known"}})
	}
	return c.reply(answer{version, id, result})
}

// maxConfigured bounds for how many things a server asks at once how they are configured.
const maxConfigured = 1000

// reply sends a response, or has it wait for its turn. The reader never waits for the server to read.
func (c *Client) reply(m any) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	select {
	case c.replies <- frame(b):
		return nil
	default:
		return fmt.Errorf("it asks for more than %d things without reading an answer", cap(c.replies))
	}
}

// maxSaid bounds how much of a server's words is told.
const maxSaid = 500

// refused is the error of a request that the server refused.
func refused(method string, r *refusal) error {
	e := &ResponseError{Method: method, Code: r.Code, Message: clip(strings.Join(strings.Fields(r.Message), " "), maxSaid)}
	return fault.Wrap(fault.State, e, "the language server refuses %s: %s (%d)", method, e.Message, e.Code).
		WithRemedy("open a file of the project first, where it says that it has none")
}
