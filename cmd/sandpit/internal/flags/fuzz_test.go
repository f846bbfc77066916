// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"strings"
	"testing"
)

// FuzzFlags holds that a length of time, a size and a mount are refused, or are ones that the wire can have.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{"90s", "7d", "106752d", "-1", "1e9h", "512", "2G", "1.5GiB", "NaN", "Inf", "0x10", "1e300M", "a:/b", "a/b:/c:ro", ":/", "a:/b:ro:rw", "9223372036854775807"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var p Period
		if err := p.Set(s); err == nil && (p.Length < 0 || *p.Seconds() < 0 || p.Length > 0 && *p.Seconds() == 0) {
			t.Errorf("%q is %v", s, p.Length)
		}
		var m Megabytes
		if err := m.Set(s); err == nil && *m.Value() < 1 {
			t.Errorf("%q is %d MiB", s, m.MiB)
		}
		if v, err := parseMount(s); err == nil && (v.Volume == "" || !strings.HasPrefix(v.Path, "/")) {
			t.Errorf("%q is %+v", s, v)
		}
	})
}
