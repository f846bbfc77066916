// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
	"sandpit.dev/store"
)

// Run runs the suite. open returns an empty store, which open closes at the end of the test that
// it was made for.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, group := range []struct {
		name string
		run  func(*testing.T, func(*testing.T) store.Store)
	}{
		{"Transactions", transactions},
		{"Sandboxes", sandboxRecords},
		{"SandboxLists", sandboxLists},
		{"Events", eventRecords},
		{"EventLists", eventLists},
		{"EventRetention", eventRetention},
		{"Tokens", tokenRecords},
		{"Contexts", contextRecords},
		{"Snapshots", snapshotRecords},
		{"SnapshotLists", snapshotLists},
		{"Volumes", volumeRecords},
		{"Secrets", secretRecords},
		{"Skills", skillRecords},
		{"Templates", templateRecords},
		{"Settings", settingRecords},
		{"Usage", usageRecords},
		{"UsageIsPruned", prunedUsage},
		{"UsageMeters", usageMeters},
		{"Projects", projectRecords},
		{"Changes", changes},
		{"Webhooks", webhookRecords},
		{"Audit", auditRows},
		{"AuditRetention", auditRetention},
		{"NetworkRequests", networkRequestRecords},
		{"PreviewLinks", previewLinkRecords},
		{"KnownImages", knownImageRecords},
		{"Sessions", sessionRecords},
		{"UnownedArchives", unownedArchiveRecords},
		{"Runs", runRecords},
		{"Requests", requestRecords},
		{"Values", values},
	} {
		t.Run(group.name, func(t *testing.T) { group.run(t, open) })
	}
}

// epoch is when the suite's records are made; the clock plays no part in it.
var epoch = time.Date(2026, 3, 4, 5, 6, 7, 891011000, time.UTC)

// box is a record with every field set, numbered n.
func box(n int) *sandbox.Sandbox {
	at := epoch.Add(time.Duration(n) * time.Second)
	return &sandbox.Sandbox{
		ID: boxID(n), Project: "default", Key: fmt.Sprintf("key-%d", n),
		Image: "python", ImageDigest: "sha256:d", AskedImage: "python-3.12", Runtime: "memory",
		Limits:   sandbox.Limits{CPU: 1.5, MemoryMB: 512, DiskMB: 1024, Pids: 256},
		Env:      map[string]string{"A": "1", "B": "two words"},
		Metadata: map[string]string{"owner": "alice", "n": fmt.Sprint(n)},
		Mounts: []sandbox.Mount{
			{Volume: volumeID(n), Name: "data", Path: "/data", Sub: "a/b", ReadOnly: true},
			{Volume: volumeID(n + 1), Path: "/more"},
		},
		Skills: []sandbox.Skill{
			{ID: "0b9f4f9e-0000-4000-8000-000000000001", Name: "data-analyzer", Digest: "sha256:a", InstalledAt: at.Add(6e6)},
			{ID: "0b9f4f9e-0000-4000-8000-000000000002", Name: "pdf", Digest: "sha256:b", InstalledAt: at.Add(7e6)},
		},
		Template: &sandbox.Template{
			ID: "tmpl_x", Name: "web", Version: 3, ChosenBy: sandbox.ChosenByProject,
			Start: sandbox.Start{Command: "serve \"x\"\n€", Ready: sandbox.Probe{Port: 8000, Interval: time.Second, Timeout: time.Minute}},
			Ready: sandbox.Readiness{Of: at.Add(8e6), At: at.Add(9e6), OK: n%2 == 0, Reason: "none", Output: "<b>"},
		},
		Network: sandbox.NetworkPolicy{
			Mode: sandbox.NetworkRestricted, AllowDomains: []string{"example.org", "*.example.net"},
			AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")},
			AllowPorts: []sandbox.PortRange{{First: 443, Last: 443}, {First: 8000, Last: 8100}}, Learn: n%2 == 0,
			AllowPresets: []string{"python"}, PresetDomains: []sandbox.PresetDomain{{Preset: "python", Domain: "example.org", Source: sandbox.PresetFromImage}},
		},
		Clocks: sandbox.Clocks{
			IdleTimeout: 30 * time.Minute, OnIdle: sandbox.IdlePause, Retention: 7*24*time.Hour + 3, ArchiveAfter: 24*time.Hour + 7, AutoDelete: n%2 == 1,
			ExpiresAt: at.Add(time.Hour), OnExpiry: sandbox.ExpiryPause, TTL: time.Hour + 1, AutoStart: n%2 == 0, AutoResume: n%3 == 0, Checkpoints: sandbox.CheckpointsCommand, RetentionDefault: n%3 == 1,
		},
		Sudo:  n%2 == 0,
		State: sandbox.Stopped, StopCause: sandbox.CauseIdle, StopDetail: "idle for 30 minutes", Handle: []byte{0, 1, 255},
		Archive: sandbox.Archive{ID: snapshotID(n + 2), Place: "bucket \"b\"", Digest: "sha256:x", PackedBytes: 1 << 40, Bytes: 7, At: at.Add(6e6)},
		Restore: snapshotID(n), Parent: snapshotID(n + 1), ForkedFrom: boxID(n + 1),
		CreatedAt: at, UpdatedAt: at.Add(1e6), StartedAt: at.Add(2e6), StoppedAt: at.Add(3e6), LastActivity: at.Add(4e6), RunTime: time.Duration(n) + 90*time.Minute, RunningSince: at.Add(5e6),
		ExecCount: 7, ExecTime: 1234567891 * time.Nanosecond, BytesUploaded: 1 << 40, BytesDownloaded: 42,
		TokenRound: int64(n) + 1, FileSalt: fmt.Sprintf("salt%d", n), Previews: sandbox.Previews{Public: n%2 == 1, Ports: []int{80, 8000 + n}, Host: "app.example:80", Key: "k"},
	}
}

func boxID(n int) sandbox.ID      { return sandbox.ID(fmt.Sprintf("box%013d", n)) }
func snapshotID(n int) sandbox.ID { return sandbox.ID(fmt.Sprintf("snap%012d", n)) }
func volumeID(n int) sandbox.ID   { return sandbox.ID(fmt.Sprintf("vol%013d", n)) }

// event is a row with every field set, of the sandbox numbered n.
func event(n int, process string) *sandbox.Event {
	return &sandbox.Event{
		Sandbox: boxID(n), Project: "default", Type: sandbox.EventExec, At: epoch, Actor: "alice", Via: "rest", Detail: "it ran",
		ProcessID: process, Language: "python", ContextID: "ctx", Name: "name of " + process, Labels: map[string]string{"a b": "ü\"", "c": ""},
		Command: "make test", User: "sandbox", Cwd: "/workspace", Done: true,
		ExitCode: -3, Signal: "SIGKILL", Cause: sandbox.CauseOOM, Duration: 1500*time.Millisecond + 1,
		StdoutBytes: 1 << 33, StderrBytes: 2, StdoutTruncated: true, StderrTruncated: true,
		Changes:      []sandbox.FileChange{{Path: "a b.txt", Action: "created", Size: 5}, {Path: "c", Action: "deleted"}},
		ChangesTotal: 201, Path: "/workspace/x", To: "/workspace/y", Bytes: 99, OK: true,
	}
}

// begun is a command's row before its result.
func begun(n int, process string) *sandbox.Event {
	return &sandbox.Event{
		Sandbox: boxID(n), Project: "default", Type: sandbox.EventExec, At: epoch, Actor: "alice", Via: "rest",
		ProcessID: process, Language: "python", ContextID: "ctx", Name: "name of " + process, Labels: map[string]string{"a b": "ü\"", "c": ""},
		Command: "make test", User: "sandbox", Cwd: "/workspace",
	}
}

func update(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), fn); err != nil {
		t.Fatalf("Update: %v", err)
	}
}

func view(t *testing.T, s store.Store, fn func(store.Tx) error) {
	t.Helper()
	if err := s.View(t.Context(), fn); err != nil {
		t.Fatalf("View: %v", err)
	}
}

// insert adds records, in one transaction.
func insert(t *testing.T, s store.Store, boxes ...*sandbox.Sandbox) {
	t.Helper()
	update(t, s, func(tx store.Tx) error {
		for _, b := range boxes {
			if err := tx.Sandboxes().Insert(b); err != nil {
				return err
			}
		}
		return nil
	})
}

func appendEvents(t *testing.T, s store.Store, events ...*sandbox.Event) {
	t.Helper()
	update(t, s, func(tx store.Tx) error {
		for _, e := range events {
			if err := tx.Events().Append(e); err != nil {
				return err
			}
		}
		return nil
	})
}

func list(t *testing.T, s store.Store, q store.SandboxQuery) (page []*sandbox.Sandbox, next string) {
	t.Helper()
	view(t, s, func(tx store.Tx) (err error) {
		page, next, err = tx.Sandboxes().List(q)
		return err
	})
	return page, next
}

func ids(boxes []*sandbox.Sandbox) []sandbox.ID {
	out := []sandbox.ID{}
	for _, b := range boxes {
		out = append(out, b.ID)
	}
	return out
}

func listEvents(t *testing.T, s store.Store, q store.EventQuery) (page []*sandbox.Event, next string) {
	t.Helper()
	view(t, s, func(tx store.Tx) (err error) {
		page, next, err = tx.Events().List(q)
		return err
	})
	return page, next
}

func seqs(events []*sandbox.Event) []int64 {
	out := []int64{}
	for _, e := range events {
		out = append(out, e.Seq)
	}
	return out
}

// wantCode fails unless err has the code.
func wantCode(t *testing.T, what string, err error, want fault.Code) {
	t.Helper()
	if got := fault.Of(err); got != want {
		t.Errorf("%s: got code %q (%v), want %q", what, got, err, want)
	}
}

func wantSame(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// inUpdate returns the error of one operation, in a transaction of its own.
func inUpdate(t *testing.T, s store.Store, fn func(store.Tx) error) error {
	return s.Update(context.WithoutCancel(t.Context()), fn)
}
