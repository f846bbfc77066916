// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"strings"
	"testing"

	"sandpit.dev/internal/cluster"
	"sandpit.dev/runtime"
	"sandpit.dev/sandbox"
)

// losses: a stop says what it loses, and nothing where it loses nothing.
func losses(t *testing.T, c *cluster.Cluster, image runtime.Image) {
	s := serve(t, c, image, options(t, c))
	spec := s.spec()
	i := s.create(spec)
	stops := func() string {
		t.Helper()
		if err := i.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		e, err := i.Wait(t.Context())
		if err != nil || e.Cause != sandbox.CauseStopped {
			t.Fatalf("Wait: %+v, %v", e, err)
		}
		if err := i.Start(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
		return e.Detail
	}
	run(t, i, "", "echo kept > file; echo temporary > /tmp/file")
	if got := stops(); got != "" {
		t.Errorf("what was changed is kept, or is temporary: %q", got)
	}
	run(t, i, "root", `echo x > /usr/local/bin/tool; echo x >> /etc/profile; rm /usr/bin/env; touch "$(printf '/opt/a\nb\033[1m')"`)
	got := stops()
	if !strings.HasSuffix(got, `changes outside of /workspace, /artifacts, /home lost with it, as of "/etc/profile", "/opt/a\nb\x1b[1m", "/usr/local/bin/tool"`) {
		t.Errorf("it says %q", got)
	}
	kept := serve(t, c, image, withUsers(t, c))
	spec = kept.spec()
	i = kept.create(spec)
	run(t, i, "root", "echo x > /usr/local/bin/tool")
	if got := stops(); got != "" {
		t.Errorf("of what is kept it says %q", got)
	}
}
