// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package sandpit

import (
	"fmt"
	"testing"

	"sandpit.dev/access"
	"sandpit.dev/api/mcp/transport"
	"sandpit.dev/code"
)

func TestCellsAreBounded(t *testing.T) {
	var cs cells
	alice := access.Caller{Project: "p", TokenID: "alice"}
	kept := make([]*cell, mostCells)
	begin := func(i int) *cell {
		return &cell{owner: transport.Identity(alice), done: make(chan struct{}), cancel: func(error) {}, start: code.Start{CellID: fmt.Sprint("cell", i)}}
	}
	for i := range kept {
		kept[i] = begin(i)
		if !cs.keep(kept[i]) {
			t.Fatalf("cell %d finds no room", i)
		}
	}
	late := begin(mostCells)
	if cs.keep(late) {
		t.Error("there was room for more than the bound")
	}
	close(kept[7].done)
	if !cs.keep(late) {
		t.Error("one that has ended makes no room")
	}
	if cs.find(alice, "cell7") != nil || cs.find(alice, "cell8") != kept[8] || cs.find(alice, fmt.Sprint("cell", mostCells)) != late {
		t.Error("the wrong one made room")
	}
	for name, c := range map[string]access.Caller{"token": {Project: "p", TokenID: "bob"}, "project": {Project: "q", TokenID: "alice"}} {
		if cs.find(c, "cell8") != nil {
			t.Errorf("it is found by another %s", name)
		}
	}
	if cs.find(alice, "") != nil {
		t.Error("one that has no id yet is found")
	}
	kept[8].drop()
	kept[8].drop()
	if cs.find(alice, "cell8") != nil || len(cs.kept) != mostCells-1 {
		t.Errorf("after a drop %d are kept", len(cs.kept))
	}
}
