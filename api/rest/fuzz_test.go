// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"errors"
	"testing"
	"unicode/utf8"

	"sandpit.dev/api/httpapi"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
)

// FuzzBodies holds that a body that cannot be read is its sender's mistake, and is told in words that can be shown.
func FuzzBodies(f *testing.F) {
	for _, s := range []string{
		`{"commands":[{"command":"a"},{"argv":["a",null]}],"ttl_seconds":-1,"wait_seconds":1e400}`, `{"command":"a","argv":["b"],"env":{"A":1}}`, `{"steps":[{"run":"x"},{}],"name":"a@1"}`,
		`{"language":"python","code":"\u0000","context_id":{}}`, `{"name":"t","scopes":"admin","expires_at":"2026-13-45"}`, `{"reference":"a b","wait_seconds":[]}`, `{"domains":["*."],"presets":[7]}`,
	} {
		f.Add([]byte(s))
	}
	decoders := map[string]func([]byte) error{
		"a run": decoded[v1.StartRun], "a command": decoded[v1.Exec], "a template": decoded[v1.CreateTemplate], "code": decoded[v1.RunCode], "a token": decoded[v1.CreateToken],
		"a pull": decoded[v1.PullImage], "a request for a network": decoded[v1.AskNetwork], "an update": decoded[v1.UpdateSandbox], "a fork": decoded[v1.ForkSandbox],
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for what, decode := range decoders {
			err := decode(data)
			if err == nil {
				continue
			}
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || e.Code != fault.Malformed && e.Code != fault.Invalid || e.Message == "" || !utf8.ValidString(e.Message) {
				t.Fatalf("%s, %q: got %#v, want a malformed or an invalid request", what, data, err)
			}
		}
	})
}

func decoded[T any](data []byte) error {
	_, err := httpapi.Decode[T](data)
	return err
}
