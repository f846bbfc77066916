// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"reflect"
	"testing"

	"sandpit.dev/fault"
)

func TestLenientIgnoresWhatIsNotKnownAlone(t *testing.T) {
	type part struct {
		A *string `json:"a"`
	}
	type body struct {
		Name *string  `json:"name"`
		N    *float64 `json:"n"`
		List []part   `json:"list"`
	}
	for _, c := range []struct {
		text         string
		strict, also bool // whether it is taken by who is strict, and by who is lenient
	}{
		{`{"name":"x","n":1,"list":[{"a":"b"}]}`, true, true},
		{`{"name":"x","new":{"deep":[1]},"list":[{"b":1}]}`, false, true},
		{`{"name":1}`, false, false},
		{`{"name":"x","name":"y"}`, false, false},
		{`{"n":"1","new":1}`, false, false},
		{`[]`, false, false},
		{`{"name":`, false, false},
	} {
		for _, lenient := range []bool{false, true} {
			var got body
			err := newObject(reflect.TypeFor[body]()).decode([]byte(c.text), reflect.ValueOf(&got).Elem(), lenient)
			want := c.strict
			if lenient {
				want = c.also
			}
			if (err == nil) != want || err != nil && !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Malformed) {
				t.Errorf("%s, lenient %v: %v", c.text, lenient, err)
			}
		}
	}
}
