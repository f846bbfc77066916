// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package image

import (
	"bytes"
	"testing"

	"sandpit.dev/fault"
)

// Where somebody brings images, the default may be one that is not here yet, by a name that the catalogue has not.
func TestTheDefaultMayBeAReference(t *testing.T) {
	const ref = "quay.io/a/b:1"
	open := func(p Policy, references bool) (*Store, error) {
		return Open(Options{Dir: t.TempDir(), Policy: p, References: references})
	}
	if _, err := open(Policy{Default: ref}, false); !fault.Is(err, fault.Invalid) {
		t.Errorf("where nobody brings any: %v", err)
	}
	for name, p := range map[string]Policy{"perl": {Default: "perl"}, "a digest": {Default: "sha256:0123456789ab"}, "no reference": {Default: "a b:/"}, "not allowed": {Default: ref, Allowed: []string{"python"}}} {
		if s, err := open(p, true); err == nil {
			t.Errorf("%s is taken", name)
			_ = s.Close()
		}
	}
	s, err := open(Policy{Default: ref, Allowed: []string{"quay.io/*/*"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if s.Default() != ref {
		t.Errorf("the default is %q", s.Default())
	}
	for _, name := range []string{"", "default"} {
		if e, err := s.Resolve(name); err != nil || e.Name != ref {
			t.Errorf("%q is %+v, %v", name, e, err)
		}
		if _, err := s.Ensure(t.Context(), name); !fault.Is(err, fault.NotFound) || fault.As(err).Remedy == "" {
			t.Errorf("%q before it is here: %v", name, err)
		}
	}
	if _, err := s.Resolve(ref); !fault.Is(err, fault.NotFound) {
		t.Errorf("its name before it is here: %v", err)
	}
	usual := func(want string) {
		t.Helper()
		all, err := s.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, st := range all {
			if st.Default {
				got += st.Name
			}
		}
		if got != want {
			t.Errorf("of %d images the default is %q, want %q", len(all), got, want)
		}
	}
	usual("")
	made, err := s.Import(t.Context(), bytes.NewReader(savedImage(t, ref, "A=1")), "", "")
	if err != nil {
		t.Fatal(err)
	}
	usual(ref)
	for _, name := range []string{"", "default", ref} {
		img, err := s.Find(t.Context(), name)
		if err != nil || img.Digest != made[0].Image.Digest {
			t.Errorf("%q is %+v, %v", name, img, err)
		}
		if e, err := s.Resolve(name); err != nil || e.Name != ref {
			t.Errorf("%q resolves to %+v, %v", name, e, err)
		}
	}
	if e, err := s.Resolve("python"); err != nil || e.Name != "python" {
		t.Errorf("the catalogue's: %+v, %v", e, err)
	}
	if err := s.SetPolicy(Policy{}); err != nil || s.Default() != "" {
		t.Errorf("without it: %v, %q", err, s.Default())
	}
}
