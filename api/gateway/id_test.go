// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/rand"
	"regexp"
	"strings"
	"testing"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestAnIDIsAUUIDAndBack(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	ids := []sandbox.ID{"aaaaaaaaaaaaaaaa", "z999999999999999", "baaaaaaaaaaaaaa9", "a999999999999999"}
	for range 1000 {
		ids = append(ids, sandbox.NewID())
	}
	seen := make(map[string]bool)
	for _, id := range ids {
		u := UUID(id)
		if !form.MatchString(u) || seen[u] {
			t.Errorf("%s is %s, which is no UUID of version 8, or another's", id, u)
		}
		seen[u] = true
		if back, err := refOf(u); back != string(id) || err != nil {
			t.Errorf("%s is %s, and that is %q, %v", id, u, back, err)
		}
	}
}

func TestAUUIDOfNoIDIsNotFound(t *testing.T) {
	random := rand.Text()
	for _, u := range []string{
		"ffffffff-ffff-ffff-ffff-ffffffffffff", "00000000-0000-0000-0000-000000000000", // the nil UUID has no version
		"00000000-0000-4000-8000-000000000000", "00000000-0000-8000-0000-000000000000",
		"00000000-0200-8000-8000-000000000000", "ffffffff-ffff-8fff-bfff-ffffffffffff",
	} {
		if ref, err := refOf(u); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s is %q, %v", u, ref, err)
		}
	}
	for _, name := range []string{random, "my-key", "", "000000000000800080000000000000000000", "not-a-uuid-but-as-long-as-one-is-xxx"} {
		if ref, err := refOf(name); ref != name || err != nil {
			t.Errorf("%q is %q, %v; it is a key", name, ref, err)
		}
	}
}

func FuzzRefOf(f *testing.F) {
	f.Add("00000000-0000-8000-8000-000000000000")
	f.Add("z999999999999999")
	f.Fuzz(func(t *testing.T, name string) {
		ref, err := refOf(name)
		if err != nil && !fault.Is(err, fault.NotFound) {
			t.Errorf("%q: %v", name, err)
		}
		if err == nil && ref != name && UUID(sandbox.ID(ref)) != strings.ToLower(name) {
			t.Errorf("%q is %q", name, ref)
		}
	})
}
