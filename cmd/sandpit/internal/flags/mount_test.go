// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "sandpit.dev/api/v1"
)

func TestMountsAreReadAsTheyAreMeant(t *testing.T) {
	for arg, want := range map[string]v1.MountVolume{
		"data:/mnt":                {Volume: "data", Path: "/mnt"},
		"data:/mnt:ro":             {Volume: "data", Path: "/mnt", ReadOnly: true},
		"data:/mnt:rw":             {Volume: "data", Path: "/mnt"},
		"data/sub/dir:/mnt":        {Volume: "data", Path: "/mnt", SubPath: new("sub/dir")},
		"team:data/sub:/mnt/a:b":   {Volume: "team:data", Path: "/mnt/a:b", SubPath: new("sub")},
		"my data:/mnt/with blanks": {Volume: "my data", Path: "/mnt/with blanks"},
	} {
		got, err := parseMount(arg)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got)\n%s", arg, err, diff)
		}
	}
	for _, arg := range []string{"", "data", "data:", "data:mnt", ":/mnt", "/mnt", "data/:/mnt", "/sub:/mnt", "data:/", "data:/:ro"} {
		if got, err := parseMount(arg); err == nil {
			t.Errorf("%q is taken for %+v", arg, got)
		}
	}
}
