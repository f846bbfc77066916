// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package load_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "sandpit.dev/api/v1"
	"sandpit.dev/internal/leaktest"
)

// groupsOf lists the groups of a namespace in every hierarchy.
func groupsOf(t *testing.T, namespace string) []string {
	t.Helper()
	now, err := leaktest.Take(leaktest.Scope{Dir: t.TempDir(), Marks: []string{namespace}})
	if err != nil {
		t.Fatal(err)
	}
	var groups []string
	for path := range now[leaktest.Cgroups] {
		groups = append(groups, path)
	}
	return groups
}

// TestGroupsOfServersThatAreGone kills servers, takes their data directories away, and looks who
// removes their groups, and when. Servers of other tests may do it, too.
func TestGroupsOfServersThatAreGone(t *testing.T) {
	h := open(t)
	tries := 5
	var gone func(sandboxes bool) (other *host, namespace string, clear func())
	gone = func(sandboxes bool) (other *host, namespace string, clear func()) {
		t.Helper()
		other = hostIn(t, t.TempDir(), "127.0.0.1:0")
		other.start()
		if sandboxes {
			if _, _, err := other.client.Create(t.Context(), v1.CreateSandbox{}); err != nil {
				t.Fatal(err)
			}
		}
		scope := other.scope()
		scope.Servers = nil
		other.kill()
		t.Cleanup(func() { other.clear(scope) })
		if len(groupsOf(t, other.namespace())) == 0 {
			if tries--; sandboxes || tries == 0 {
				t.Fatal("a server that is killed leaves no groups")
			}
			return gone(sandboxes) // a server of another test, which began just then, removed them
		}
		namespace = other.namespace()
		if err := os.RemoveAll(filepath.Join(other.dir, "data")); err != nil {
			t.Fatal(err)
		}
		return other, namespace, func() { end(t, scope) }
	}
	doctor := func(h *host, namespace string, args ...string) (told bool, done string) {
		t.Helper()
		found, _ := h.doctorOfHost(args...) // which may also find what is not ours
		i := slices.IndexFunc(found, func(f finding) bool { return strings.Contains(f.Detail, namespace) })
		if i < 0 {
			return false, ""
		}
		return true, found[i].Done
	}
	t.Run("Doctor", func(t *testing.T) {
		other, namespace, clear := gone(true)
		before := groupsOf(t, namespace)
		if told, _ := doctor(h, namespace, "--repair"); told {
			t.Error("doctor speaks of groups in which processes are")
		}
		if after := groupsOf(t, namespace); len(after) != len(before) {
			t.Errorf("groups in which processes are: %d, then %d", len(before), len(after))
		}
		clear()
		told, done := doctor(other, namespace)
		if left := groupsOf(t, namespace); done != "" || !told && len(left) > 0 {
			t.Errorf("doctor speaks of them: %v, %q; there are %q", told, done, left)
		}
		eventually(t, "doctor --repair removes them", func() bool {
			doctor(h, namespace, "--repair")
			return len(groupsOf(t, namespace)) == 0
		})
	})
	t.Run("Start", func(t *testing.T) {
		_, namespace, _ := gone(false)
		h.end()
		h.start()
		eventually(t, "the start of a server removes them", func() bool { return len(groupsOf(t, namespace)) == 0 })
	})
	t.Run("Kept", func(t *testing.T) {
		// The server is down, and its data directory says that its sandbox was up.
		if _, _, err := h.client.Create(t.Context(), v1.CreateSandbox{}); err != nil {
			t.Fatal(err)
		}
		scope := h.scope()
		scope.Servers = nil
		namespace := h.namespace()
		h.kill()
		end(t, scope)
		other := open(t)
		found, _ := other.doctorOfHost("--repair")
		if slices.ContainsFunc(found, func(f finding) bool { return strings.Contains(f.Detail, namespace) }) {
			t.Errorf("doctor speaks of groups of a server that may come again: %+v", found)
		}
		if len(groupsOf(t, namespace)) == 0 {
			t.Error("groups of a server that may come again were removed")
		}
		h.start()
	})
}

// end kills what runs in a scope.
func end(t *testing.T, scope leaktest.Scope) {
	t.Helper()
	procs, err := scope.Processes()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended
	}
	eventually(t, "the processes end", func() bool {
		procs, err := scope.Processes()
		return err == nil && len(procs) == 0
	})
}

// eventually waits until what is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(settleTime); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", settleTime, what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
