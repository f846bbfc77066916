// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"sandpit.dev/fault"
)

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
		for name, value := range members(data) {
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
		for value := range elements(data) {
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
		text, exact := EncodeText([]byte(c.in), c.cut)
		if text != c.text || (exact != "") != c.exact {
			t.Errorf("%q, cut %v: got %q %q, want %q %v", c.in, c.cut, text, exact, c.text, c.exact)
		}
	}
}

func TestSuggest(t *testing.T) {
	known := []string{"image", "memory_mb", "idle_timeout_seconds"}
	for name, want := range map[string]string{"imge": "image?", "MEMORY_MB": "memory_mb?", "idle-timeout-seconds": "idle_timeout_seconds?", "xyz": "there are image, memory_mb, idle_timeout_seconds", strings.Repeat("image", 1000): "there are"} {
		if got := Suggest(name, known); !strings.Contains(got, want) {
			t.Errorf("%.20s: got %q, want %q in it", name, got, want)
		}
	}
}

func TestAParameterThatCannotBeReadIsRefused(t *testing.T) {
	for name, o := range map[string]Operation{
		"ANumberOfThePath": Op("a", "GET /a/{n}", "", 200, func(context.Context, *Call, *struct {
			N int `path:"n"`
		}) (None, error) {
			return None{}, nil
		}),
		"AListOfNumbers": Op("a", "GET /a", "", 200, func(context.Context, *Call, *struct {
			N []int `query:"n"`
		}) (None, error) {
			return None{}, nil
		}),
		"AnObjectInTheQuery": Op("a", "GET /a", "", 200, func(context.Context, *Call, *struct {
			N struct{} `query:"n"`
		}) (None, error) {
			return None{}, nil
		}),
	} {
		if err := o.check(); !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "parameter n") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	type all struct {
		ID    string            `path:"id"`
		Text  *string           `query:"text"`
		Int   *int              `query:"int"`
		Long  *int64            `query:"long"`
		Float *float64          `query:"float"`
		Bool  *bool             `query:"bool"`
		List  []string          `query:"list"`
		All   map[string]string `query:"metadata.*"`
	}
	o := Op("a", "GET /a/{id}", "", 200, func(context.Context, *Call, *all) (None, error) { return None{}, nil })
	if err := o.check(); err != nil {
		t.Error(err)
	}
}

func TestAMemberMayHaveANameOfItsOwn(t *testing.T) {
	var sp Spellings
	sp.Wrote("network", "policy")
	sp.Wrote("network.allow_domains", "policy.domains")
	for own, want := range map[string]string{
		"network": "policy", "network.mode": "policy.mode", "network.allow_domains": "policy.domains", "network.allow_domains[3]": "policy.domains[3]",
	} {
		if got := fault.As(sp.Rename(fault.InvalidField(own, "is wrong"))).Fields[0].Name; got != want {
			t.Errorf("%s is told as %s, not as %s", own, got, want)
		}
	}
}
