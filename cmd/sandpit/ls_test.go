// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	v1 "sandpit.dev/api/v1"
)

func TestFiltersOfLists(t *testing.T) {
	var f filters
	for _, s := range []string{"status=stopped,failed", "status=running", "name=web", "image=python", "label=a=b=c", "created-from=2026-01-31", "active-to=7d", "expires-to=2030-01-31T12:00:00Z", "cpu-from=0.5", "memory-to=2G", "disk-from=512M"} {
		if err := f.Set(s); err != nil {
			t.Error(err)
		}
	}
	if len(f.status) != 3 || f.image != "python" || f.labels["a"] != "b=c" {
		t.Errorf("got %+v", f)
	}
	q := f.spans
	if q.CreatedFrom.IsZero() || q.ActivityTo.IsZero() || q.ExpiresTo.Year() != 2030 || q.CPUFrom != 0.5 || q.MemoryTo != 2048 || q.DiskFrom != 512 {
		t.Errorf("got %+v", q)
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
	for _, s := range []string{"status", "status=", "label=a", "label==b", "size=1", "image=node", "created-from=soon", "cpu-from=-1", "cpu-to=many", "memory-from=x", "size-from=1"} {
		if err := f.Set(s); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}
