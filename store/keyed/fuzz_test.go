// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package keyed_test

import (
	"net/http"
	"testing"

	"sandpit.dev/store/keyed"
)

// FuzzKey holds that a key that is taken can be sent again in a header as it is.
func FuzzKey(f *testing.F) {
	for _, s := range []string{"a", "", "6f1c…", "a b", "a\nb", "\x7f", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if keyed.CheckKey("Idempotency-Key", key) != nil {
			return
		}
		h := http.Header{}
		h.Set("Idempotency-Key", key)
		if len(key) > keyed.MaxKey || h.Get("Idempotency-Key") != key {
			t.Errorf("%q is taken", key)
		}
		for _, c := range []byte(key) {
			if c < ' ' || c > '~' {
				t.Errorf("%q is taken", key)
			}
		}
	})
}
