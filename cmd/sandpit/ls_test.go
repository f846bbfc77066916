// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	v1 "sandpit.dev/api/v1"
)

func TestFiltersOfLists(t *testing.T) {
	var f filters
	for _, s := range []string{"status=stopped,failed", "status=running", "name=web", "image=python", "label=a=b=c"} {
		if err := f.Set(s); err != nil {
			t.Error(err)
		}
	}
	if len(f.status) != 3 || f.image != "python" || f.labels["a"] != "b=c" {
		t.Errorf("got %+v", f)
	}
	key := "my-web-1"
	for _, s := range []*v1.Sandbox{{ID: "a", Key: &key}, {ID: "webx"}} {
		if !f.named(s) {
			t.Errorf("%s is not found", s.Ref())
		}
	}
	if f.named(&v1.Sandbox{ID: "a", Image: "web"}) {
		t.Error("an image is found as a name")
	}
	for _, s := range []string{"status", "status=", "label=a", "label==b", "size=1", "image=node"} {
		if err := f.Set(s); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}
