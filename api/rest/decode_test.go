// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/api/rest"
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
		b, err := rest.DecodeCreate(data)
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
		b2, err := rest.DecodeCreate(again)
		if err != nil {
			t.Fatalf("%q was taken, %q was not: %v", data, again, err)
		}
		if diff := cmp.Diff(b2, b); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzMembers holds the scanner against the standard library's decoder.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, ` { "a" : 1 , "b":[{},"]"],"c":{"d":"}"} } `, `{"\u0061":"\\\"","b":-1.5e+3,"c":null,"d":true}`, `{"":""}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		if !utf8.Valid(data) || json.Unmarshal(data, &want) != nil || want == nil {
			return // no object
		}
		got := make(map[string]json.RawMessage)
		for name, value := range rest.Members(data) {
			got[name] = value
		}
		if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
			t.Fatalf("%q: names: got %v, want %v", data, got, want)
		}
		for name := range want {
			if !bytes.Equal(got[name], want[name]) {
				t.Fatalf("%q: %q: got %q, want %q", data, name, got[name], want[name])
			}
		}
	})
}

// FuzzElements is FuzzMembers for arrays.
func FuzzElements(f *testing.F) {
	for _, seed := range []string{`[]`, ` [ 1 , "a" ,{"b":"]"},[ [ ] ],null,-1.5e+3,true ] `, `["\\\"","]"]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want []json.RawMessage
		if !utf8.Valid(data) || json.Unmarshal(data, &want) != nil || want == nil {
			return // no array
		}
		var got []json.RawMessage
		for value := range rest.Elements(data) {
			got = append(got, value)
		}
		if !slices.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("%q: got %q, want %q", data, got, want)
		}
	})
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		in, text string
		cut      bool
		exact    bool
	}{
		{"", "", false, false}, {"abc", "abc", true, false}, {"aä", "aä", true, false}, {"a\xc3", "a\uFFFD", false, true}, {"a\xc3", "a", true, false},
		{"a\xe2\x82", "a", true, false}, {"a\xf0\x9f\x98", "a", true, false}, {"a\xff", "a\uFFFD", true, true}, {"\x80\x80", "\uFFFD", true, true}, {"\xc3", "", true, false},
	} {
		text, exact := rest.Output([]byte(c.in), c.cut)
		if text != c.text || (exact != "") != c.exact {
			t.Errorf("%q, cut %v: got %q %q, want %q %v", c.in, c.cut, text, exact, c.text, c.exact)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"image", "memory_mb", "idle_timeout_seconds"}
	for name, want := range map[string]string{"imge": "image?", "MEMORY_MB": "memory_mb?", "idle-timeout-seconds": "idle_timeout_seconds?", "xyz": "there are image, memory_mb, idle_timeout_seconds", strings.Repeat("image", 1000): "there are"} {
		if got := rest.Suggest(name, known); !strings.Contains(got, want) {
			t.Errorf("%.20s: got %q, want %q in it", name, got, want)
		}
	}
}

func TestEveryParameterCanBeBound(t *testing.T) {
	h := open(t)
	for id, types := range h.api.Params() {
		for _, typ := range types {
			switch typ.String() {
			case "string", "*string", "*int", "*int64", "*float64", "*bool", "[]string":
			default:
				t.Errorf("%s: a parameter of the type %s cannot be bound", id, typ)
			}
		}
	}
}
