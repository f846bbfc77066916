// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"testing"

	"sandpit.dev/agent/wire"
	"sandpit.dev/fault"
)

// What an agent says of changes is checked: a path leads nowhere else, and a number is one.
func TestChangesOfAnAgentAreNotTrusted(t *testing.T) {
	ctx := context.Background()
	file := func(p, action string, size int64) []wire.ChangedFile {
		return []wire.ChangedFile{{Path: p, Action: action, Size: size}}
	}
	for name, b := range map[string][]byte{
		"a path above":   frames(wire.Reply, "{}", wire.Item, file("../x", wire.Created, 0), wire.Done, wire.Changed{Total: 1}),
		"an absolute":    frames(wire.Reply, "{}", wire.Item, file("/x", wire.Created, 0), wire.Done, wire.Changed{Total: 1}),
		"no action":      frames(wire.Reply, "{}", wire.Item, file("x", "eaten", 0), wire.Done, wire.Changed{Total: 1}),
		"a size below 0": frames(wire.Reply, "{}", wire.Item, file("x", wire.Created, -1), wire.Done, wire.Changed{Total: 1}),
		"more than all":  frames(wire.Reply, "{}", wire.Item, file("x", wire.Created, 0), wire.Done, wire.Changed{}),
		"too many":       frames(wire.Reply, "{}", wire.Item, make([]wire.ChangedFile, wire.MaxChanged+1), wire.Done, wire.Changed{}),
		"no end":         frames(wire.Reply, "{}"),
	} {
		w, err := answering(b).Track(ctx, "/workspace")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c, err := w.Close(ctx); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
	for name, e := range map[string]wire.FileEvent{
		"elsewhere":         {Type: wire.Created, Path: "/etc/passwd"},
		"above":             {Type: wire.Created, Path: "/workspace/../etc"},
		"itself":            {Type: wire.Created, Path: "/workspace"},
		"beside":            {Type: wire.Created, Path: "/workspaces/x"},
		"from elsewhere":    {Type: wire.Renamed, Path: "/workspace/x", From: "/etc/passwd"},
		"no kind":           {Type: "eaten", Path: "/workspace/x"},
		"nothing dropped":   {Type: wire.Dropped},
		"a created rename":  {Type: wire.Created, Path: "/workspace/x", From: "/workspace/y"},
		"a dropped created": {Type: wire.Created, Path: "/workspace/x", Dropped: 3},
	} {
		w, err := answering(frames(wire.Reply, "{}", wire.Item, []wire.FileEvent{e})).Watch(ctx, "/workspace", true)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for range 2 {
			if got, err := w.Next(ctx); !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
		}
		_ = w.Close()
	}
}

func TestAnOlderAgentTellsOfNoChanges(t *testing.T) {
	ctx := context.Background()
	old := answering(frames(wire.Failure, wire.Error{Code: string(fault.Unsupported), Message: "the sandbox's agent does not know the operation", Remedy: "stop and start the sandbox"}))
	if _, err := old.Track(ctx, "/workspace"); !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy == "" {
		t.Errorf("Track: %v", err)
	}
	if _, err := old.Watch(ctx, "/workspace", true); !fault.Is(err, fault.Unsupported) || fault.As(err).Remedy == "" {
		t.Errorf("Watch: %v", err)
	}
}

func TestNamesThatAreNoTextAreWrittenAsSuch(t *testing.T) {
	ctx := context.Background()
	w, err := answering(frames(wire.Reply, "{}", wire.Item, []wire.FileEvent{{Type: wire.Renamed, From: wire.EscapeName("/w/a\xff"), Path: `/w/b\`}})).Watch(ctx, "/w", true)
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Next(ctx)
	if err != nil || len(got) != 1 || got[0].From != `/w/a\xff` || got[0].Path != `/w/b\\` || !got[0].Escaped {
		t.Errorf("got %+v, %v", got, err)
	}
}
