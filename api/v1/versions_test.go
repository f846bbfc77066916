// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"testing"
)

func TestVersionsAreTheJSONOfAMap(t *testing.T) {
	for _, m := range []map[string]string{
		nil, {}, {"python": "3.13.5"}, {"b": "2", "a": "1", "": ""}, {"g++": "<&>", `q"\`: "\n\u2028\xff", "é": "\x7f"},
	} {
		want, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(Versions(m))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
		var back Versions
		if err := json.Unmarshal(got, &back); err != nil || len(back) != len(m) {
			t.Errorf("%s becomes %v, %v", got, back, err)
		}
	}
}
