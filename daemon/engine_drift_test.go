// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"io"
	"strings"
	"testing"

	"sandpit.dev/client"
	"sandpit.dev/internal/dockerd/dockerdtest"
)

// A container that was made with other rights gets those of now by the next start, and its record says so.
func TestTheRecordTellsOfOtherRights(t *testing.T) {
	i := newInstallation(t)
	h := dockerdtest.New(t)
	i.cfg.Names, i.cfg.Docker.Host, i.cfg.AdminToken = []string{"docker"}, "unix://"+h.Socket(), adminToken
	url, stop, err := i.start(Adopt{})
	i.must(err)
	c, s := works(t, url)
	i.must(c.WriteFile(t.Context(), s.ID, "/mine", strings.NewReader("kept"), client.WriteOptions{User: "root"}))
	stop()

	i.cfg.Docker.Runtime = "runc" // other words for the Engine's default
	url, stop, err = i.start(Adopt{})
	i.must(err)
	defer stop()
	c = client.New(url, adminToken, client.Options{})
	starts := func() (details []string) {
		t.Helper()
		for e, err := range c.Activity(t.Context(), s.ID, client.ActivityQuery{}) {
			i.must(err)
			if e.Type == "sandbox.started" {
				details = append(details, e.Detail)
			}
		}
		return details
	}
	for range 2 {
		i.must(errOf(c.Stop(t.Context(), s.ID)))
		i.must(errOf(c.Start(t.Context(), s.ID)))
	}
	told := 0
	for _, detail := range starts() {
		if detail == "" {
			continue
		}
		told++
		if !strings.Contains(detail, "other rights") || !strings.Contains(detail, "kept its disk") {
			t.Errorf("a start's event says %q", detail)
		}
	}
	if told != 1 {
		t.Errorf("%d starts say something, of %q", told, starts())
	}
	f, err := c.ReadFile(t.Context(), s.ID, "/mine", client.ReadOptions{User: "root"})
	i.must(err)
	defer func() { _ = f.Close() }()
	if b, err := io.ReadAll(f); err != nil || string(b) != "kept" {
		t.Errorf("its file is %q, %v", b, err)
	}
	i.must(c.Delete(t.Context(), s.ID))
}
