// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package daytonaterms_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sandpit.dev/api/daytonaterms"
	"sandpit.dev/engine"
	"sandpit.dev/fault"
	"sandpit.dev/sandbox"
)

func TestClocks(t *testing.T) {
	t.Parallel()
	never := engine.CreateRequest{IdleTimeout: new(15 * time.Minute), Retention: new(time.Duration(0))}
	for _, c := range []struct {
		name string
		in   daytonaterms.Clocks
		want engine.CreateRequest
		bad  []string // the fields
	}{
		{"NothingIsSaid", daytonaterms.Clocks{}, never, nil},
		{"Stop", daytonaterms.Clocks{AutoStop: new(30.0)}, engine.CreateRequest{IdleTimeout: new(30 * time.Minute), Retention: new(time.Duration(0))}, nil},
		{"StopNever", daytonaterms.Clocks{AutoStop: new(0.0)}, engine.CreateRequest{IdleTimeout: new(time.Duration(0)), Retention: new(time.Duration(0))}, nil},
		{"Pause", daytonaterms.Clocks{AutoPause: new(2.0), AutoStop: new(0.0)}, engine.CreateRequest{
			IdleTimeout: new(2 * time.Minute), OnIdle: new(sandbox.IdlePause), AutoResume: new(true), Retention: new(time.Duration(0)),
		}, nil},
		{"ArchiveAndDelete", daytonaterms.Clocks{AutoArchive: new(60.0), AutoDelete: new(0.5), TTL: new(90.0)}, engine.CreateRequest{
			IdleTimeout: new(15 * time.Minute), ArchiveAfter: time.Hour, Retention: new(30 * time.Second), TTL: 90 * time.Minute,
		}, nil},
		{"DeleteAtOnce", daytonaterms.Clocks{AutoDelete: new(0.0)}, engine.CreateRequest{IdleTimeout: new(15 * time.Minute), AutoDelete: new(true)}, nil},
		{"DeleteNever", daytonaterms.Clocks{AutoDelete: new(-1.0)}, never, nil},
		{"StopAndPause", daytonaterms.Clocks{AutoStop: new(1.0), AutoPause: new(1.0)}, engine.CreateRequest{}, []string{"autoPauseInterval"}},
		{"DeleteWhatPauses", daytonaterms.Clocks{AutoDelete: new(0.0), AutoPause: new(1.0)}, engine.CreateRequest{}, []string{"autoDeleteInterval"}},
		{"AllThatIsWrong", daytonaterms.Clocks{AutoStop: new(-1.0), AutoArchive: new(math.NaN()), TTL: new(math.Inf(1)), AutoDelete: new(1e18)}, engine.CreateRequest{},
			[]string{"autoStopInterval", "autoArchiveInterval", "autoDeleteInterval", "ttlMinutes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got engine.CreateRequest
			if diff := cmp.Diff(c.bad, names(c.in.Apply(&got))); diff != "" {
				t.Error(diff)
			}
			if !reflect.DeepEqual(c.want, got) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func names(bad []fault.Field) (out []string) {
	for _, f := range bad {
		out = append(out, f.Name)
	}
	return out
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cpu, memory, disk float64
		want              sandbox.Limits
	}{
		{0, 0, 0, sandbox.Limits{}},
		{2, 4, 0.5, sandbox.Limits{CPU: 2, MemoryMB: 4096, DiskMB: 512}},
		{0.5, 1e-9, 1e300, sandbox.Limits{CPU: 0.5, MemoryMB: 1, DiskMB: math.MaxInt32}},
		{0, -1e300, math.NaN(), sandbox.Limits{MemoryMB: math.MinInt32, DiskMB: math.MaxInt32}},
	} {
		if got := daytonaterms.Limits(c.cpu, c.memory, c.disk); got != c.want {
			t.Errorf("%v, %v and %v GiB are %+v, want %+v", c.cpu, c.memory, c.disk, got, c.want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		block bool
		allow string
		mode  sandbox.NetworkMode // "": none
		names []string
		cidrs int
		bad   []string
	}{
		{"NothingIsSaid", false, " , ", "", nil, 0, nil},
		{"All", true, "", sandbox.NetworkOff, nil, 0, nil},
		{"AList", false, "10.0.0.0/8, example.org ,192.0.2.1/32", sandbox.NetworkRestricted, []string{"example.org"}, 2, nil},
		{"Both", true, "example.org", "", nil, 0, []string{"networkAllowList"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p, bad := daytonaterms.Network(c.block, c.allow)
			if diff := cmp.Diff(c.bad, names(bad)); diff != "" {
				t.Error(diff)
			}
			switch {
			case p == nil && c.mode != "":
				t.Error("there is no policy")
			case p != nil && (p.Mode != c.mode || !cmp.Equal(p.AllowDomains, c.names) || len(p.AllowCIDRs) != c.cidrs):
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestOrigin(t *testing.T) {
	t.Parallel()
	for snapshot, want := range map[string][2]string{
		"": {"", ""}, "python": {"", "python"}, "s3lh4ecrtsuun4nx": {"s3lh4ecrtsuun4nx", ""}, "chat/before": {"chat/before", ""},
	} {
		if from, image := daytonaterms.Origin(snapshot); from != want[0] || image != want[1] {
			t.Errorf("%q is the snapshot %q or the image %q", snapshot, from, image)
		}
	}
	for text, want := range map[string]string{
		"FROM python\n": "python", "# a comment\n\nfrom node:22 \n": "node:22", "FROM a\nRUN b\n": "", "FROM a\nFROM b\n": "", "": "", "FROM a AS b": "",
	} {
		if image, ok := daytonaterms.OnlyFrom(text); image != want || ok != (want != "") {
			t.Errorf("%q is of %q, %v", text, image, ok)
		}
	}
}
