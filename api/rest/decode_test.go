// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/api/httpapi"
	"sandpit.dev/api/rest"
	v1 "sandpit.dev/api/v1"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func FuzzCreate(f *testing.F) {
	for _, seed := range []string{
		`{}`, ``, ` `, `null`, `[]`, `{"image":"python","memory_mb":512,"session_key":"a"}`, `{"env":{"A":"b","A":null}}`, `{"a":{"b":[1,"}",{"c":"\""}]}}`,
		`{"size":"small","cpu":1}`, `{"network":"off","network_enabled":false}`, "{\"key\":\"\xff\"}", `{"\u0069mage":"x"}`, `{"memory_mb":1e3}`, `{"ttl_seconds":-0}`, `{} x`,
		`{"volumes":[{"volume":"a","path":"/b","sub_path":"c","read_only":true}],"from_snapshot":"b/c"}`, `{"volumes":[[],"]",{"x":"}"},null,{"path":["]"]}]}`, `{"volumes":[ ]}`,
		`{"ttl_seconds":60,"ttl_mode":"sliding","timeout_seconds":600,"idle_action":"pause","checkpoints":"command"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := httpapi.Decode[v1.CreateSandbox](data)
		if err != nil {
			e, ok := errors.AsType[*fault.Error](err)
			if !ok || (e.Code != fault.Malformed && e.Code != fault.Invalid) || e.Message == "" || !utf8.ValidString(e.Message) {
				t.Fatalf("%q: got %#v, want a malformed or an invalid request", data, err)
			}
			if (e.Code == fault.Invalid) != (len(e.Fields) > 0) {
				t.Fatalf("%q: got %v with fields %v", data, e.Code, e.Fields)
			}
			return
		}
		r, err := rest.CreateRequest(&b)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatalf("%q: got %v", data, err)
			}
			return
		}
		if err := r.Limits.Or(sandbox.DefaultLimits()).Check(); err != nil {
			t.Fatalf("%q: limits out of bounds were taken: %v", data, err)
		}
		if r.TTL < 0 || r.IdleTimeout != nil && *r.IdleTimeout < 0 || r.Retention != nil && *r.Retention < 0 {
			t.Fatalf("%q: a clock below zero was taken: %+v", data, r)
		}
		// What was taken says the same when it is written and read again.
		again, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		b2, err := httpapi.Decode[v1.CreateSandbox](again)
		if err != nil {
			t.Fatalf("%q was taken, %q was not: %v", data, again, err)
		}
		if diff := cmp.Diff(b2, b); diff != "" {
			t.Fatal(diff)
		}
	})
}
