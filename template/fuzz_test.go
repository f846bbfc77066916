// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"testing"

	"sandpit.dev/template"
)

// FuzzRef holds that a name with a version is one in one way.
func FuzzRef(f *testing.F) {
	for _, s := range []string{"web", "web@3", "web@0", "web@03", "a@b@2", "@1", "web@-1", "web@99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		name, version := template.ParseRef(ref)
		if version < 0 || version == 0 && name != ref {
			t.Fatalf("%q is %q, version %d", ref, name, version)
		}
		if version > 0 && (&template.Template{Name: name, Version: version}).Ref() != ref {
			t.Errorf("%q is %q, version %d, which is not written so", ref, name, version)
		}
		if template.CheckName(ref) == "" && (version != 0 || template.IsID(ref)) {
			t.Errorf("%q is a name, and not one alone", ref)
		}
	})
}
